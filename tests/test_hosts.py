"""Scripts and files for hosts that are not here: what they name is there, and those for a GPU run on a processor."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lakewright.experiments.cli import build_app
from lakewright.experiments.cli.conventions.options import take_overrides
from lakewright.experiments.loop.host.estimate import GB, estimate_of
from lakewright.experiments.loop.settings.run_settings import load_settings
from tests.support.processes.commands import surroundings

HOUSE = Path(__file__).parents[1]
SCRIPT = HOUSE / "docs" / "hosts" / "qwen3-4b.slurm"
CONTAINER = HOUSE / "docs" / "hosts" / "Containerfile"
MAKEFILE = (HOUSE / "Makefile").read_text()
INSTRUCTIONS = {"FROM", "RUN", "ENV", "WORKDIR", "COPY", "ENTRYPOINT"}
OPTION = re.compile(r"#SBATCH --([a-z-]+)(?:=(\S+))?")


def commands_in(text: str) -> list[list[str]]:
    """The words after `lakewright`, without variables that a shell fills in."""
    lines = [line for line in text.splitlines() if re.search(r"\blakewright (doctor|run) ", line)]
    return [shlex.split(re.sub(r"\"\$@\"", "", line.split("lakewright ")[-1]).replace("$RUN", "run")) for line in lines]


def instructions() -> list[list[str]]:
    """The container's, each with its words."""
    text = re.sub(r"^#.*\n", "", CONTAINER.read_text(), flags=re.M)
    return [line.split() for line in re.sub(r"\\\n\s*", "", text).splitlines() if line]


@pytest.mark.parametrize("file", [SCRIPT, CONTAINER], ids=lambda file: file.name)
def test_the_commands_are_those_of_the_command_line_with_presets_that_there_are(file):
    found = commands_in(file.read_text())
    assert [words[0] for words in found] == ["doctor", "run"], "the doctor comes first"
    for words in found:
        overrides, given = take_overrides(words)
        command, bound, _ = build_app().parse_args(given, print_error=False, exit_on_error=False)
        assert command.__name__ == words[0]
        assert load_settings(bound.arguments["preset"], overrides).device == "cuda"


def test_the_script_is_bash_whose_first_lines_slurm_reads():
    lines = SCRIPT.read_text().splitlines()
    checked = subprocess.run(["bash", "-n", str(SCRIPT)], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert lines[0] == "#!/bin/bash"
    options = [line for line in lines if line.startswith("#SBATCH")]
    assert all(OPTION.fullmatch(line) for line in options)
    first_command = next(number for number, line in enumerate(lines) if line and not line.startswith("#"))
    assert all(lines.index(line) < first_command for line in options), "Slurm reads no options after a command"


def test_the_script_asks_for_the_gpus_and_the_memory_that_the_preset_takes():
    options = dict(OPTION.findall(SCRIPT.read_text()))
    settings = load_settings("qwen3-4b", [])
    assert int(options["gpus-per-node"]) == settings.launch.processes
    assert int(options["mem"].removesuffix("G")) * GB > 2 * estimate_of(settings).loading


def test_the_script_says_what_is_missing(tmp_path):
    ended = subprocess.run(
        ["bash", str(SCRIPT)], capture_output=True, text=True, check=False, env={"SLURM_SUBMIT_DIR": str(tmp_path)}
    )
    assert ended.returncode != 0
    assert "RUN: name the run folder" in ended.stderr


def test_the_script_stops_at_the_doctor_and_hands_settings_on(tmp_path):
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    (tools / "activate").write_text(f'PATH="{tools}:$PATH"\n')
    for name, body in {
        "lakewright": 'echo "$@" >>"$SEEN"; [ "$1" != doctor ] || exit $SICK',
        "srun": '"${@:2}"',
    }.items():
        (tools / name).write_text(f"#!/bin/bash\n{body}\n")
        (tools / name).chmod(0o755)

    def ran(sick: int) -> tuple[int, list[str]]:
        seen = tmp_path / f"seen{sick}"
        env = {"LAKEWRIGHT": str(tmp_path), "RUN": "r", "SEEN": str(seen), "SICK": str(sick), "PATH": "/usr/bin:/bin"}
        env["SLURM_SUBMIT_DIR"] = str(tmp_path)
        ended = subprocess.run(["bash", str(SCRIPT), "stages=2"], env=env, check=False)
        return ended.returncode, seen.read_text().splitlines()

    said = [f"{command} --preset qwen3-4b --out r stages=2" for command in ("doctor", "run")]
    assert ran(0) == (0, said)
    assert ran(2) == (2, said[:1]), "nothing is spent on a host that must be changed"


def test_the_container_copies_what_is_there_and_installs_from_the_lock():
    parts = instructions()
    assert {words[0] for words in parts} == INSTRUCTIONS
    for words in parts:
        if words[0] == "COPY":
            missing = [name for name in words[1:-1] if not (HOUSE / name).exists()]
            assert not missing, f"the container copies {missing}"
    made = [words[2] for words in parts if words[:2] == ["RUN", "make"]]
    assert made == ["install-gpu"]
    recipe = re.search(r"^install-gpu:.*\n((?:\t.+\n)+)", MAKEFILE, re.M)[1]
    assert "--no-deps --require-hashes --requirements .ci/requirements-gpu.lock" in recipe


def test_the_container_has_every_wing_that_is_installed():
    copied = {name for words in instructions() if words[0] == "COPY" for name in words[1:-1]}
    assert {file.parent.name for file in HOUSE.glob("*/__init__.py")} - {"tests"} <= copied


def test_the_container_has_the_files_that_an_installation_needs():
    needed = re.search(r"^\.venv/installed: (.+)$", MAKEFILE, re.MULTILINE)[1].split()
    copied = {name.rstrip("/") for words in instructions() if words[0] == "COPY" for name in words[1:-1]}
    assert {name.split("/")[0] for name in needed} <= copied


def test_the_files_for_clusters_start_a_study_by_options_that_there_are():
    script = HOUSE / "docs" / "hosts" / "study.slurm"
    assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0
    job = yaml.safe_load((HOUSE / "docs" / "hosts" / "study-rayjob.yaml").read_text())
    started = script.read_text().splitlines()[-1].replace('"$@"', "")
    for line in (job["spec"]["entrypoint"], started):
        command, bound, _ = build_app().parse_args(shlex.split(line)[1:], print_error=False, exit_on_error=False)
        assert command.__name__ == "study"
        assert bound.arguments["where"].executor == "ray"


GPU_SCRIPTS = HOUSE / "docs" / "hosts" / "gpu"


def run_script(name: str, *options: object) -> str:
    """Runs a script of docs/hosts/gpu on this processor: what it prints."""
    given = [sys.executable, str(GPU_SCRIPTS / name), *map(str, options)]
    ended = subprocess.run(given, env=surroundings(), capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.deep
@pytest.mark.parametrize(
    "part",
    ["machine", "solve", "generate", "statistics", "sweep", "teams", "labels", "digests", "cores", "tests"],
)
def test_each_part_of_the_rates_on_a_gpu_comes_to_its_end_on_a_processor_that_pretends(part, tmp_path):
    few = "--pretend", "--sizes", 5, "--share", 0.0001
    run_script("core_rates.py", tmp_path, *few, "--parts", part, "--seconds", 280)
    found = json.loads((tmp_path / "core_rates.json").read_text())["parts"][part]
    assert "error" not in found, found["error"]
    assert found.keys() > {"seconds"}, "the part should find something"
    if part == "labels":
        assert not any(found["5x5"]["wrong"].values()), found
    if part == "teams":
        assert not any(found["5x5, three agents, labels"]["wrong"].values()), found
    if part == "digests":
        assert found["cases"] == {"compared": 1, "different": []}
    if part == "tests":
        assert found["core"]["code"] == 0, found["core"]["output"]


@pytest.mark.deep
def test_the_work_of_a_gpu_is_counted_without_one():
    lines = run_script("count_work.py", "--size", 4, "--block", 64, "--blocks", 2).splitlines()
    assert [line.split(":")[0] for line in lines[::2]] == ["generate", "sweep", "solve"]
