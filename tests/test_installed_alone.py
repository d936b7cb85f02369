"""The base without any extra: what works, what says which extra it needs, and how little of a process it touches."""

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import describe_missing, naming_extra
from lakewright.core_jax.support.extras import NAMES
from tests.support.processes.commands import HOUSE, surroundings
from tests.test_installed_names import WINGS

ADDITION = f"{HOUSE / 'docs' / 'examples' / 'addition.py'}:Addition"
REQUIRED = list(map(Requirement, importlib.metadata.requires("lakewright")))
HEAVY = {"jax", "jaxlib", "torch", "transformers", "trl", "datasets", "flax", "chex", "pyarrow", "duckdb", "psutil"}
HEAVY |= {"numba", "llvmlite", "tabulate", "yaml", "pysat", "resvg_py", "jinja2", "httpx2", "uvicorn", "tqdm"}
HEAVY |= {"scipy", "sklearn", "reasoning_gym", "gymnasium", "verl", "ray"}
HIDE = """
import sys

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

HIDDEN = %r
sys.meta_path.insert(0, Hide())
"""
RUN_COMMANDS = """
import contextlib, io, json
from lakewright.experiments.cli.app import main
told = []
for words in %r:
    with contextlib.redirect_stderr(io.StringIO()) as error, contextlib.redirect_stdout(io.StringIO()):
        code = main(words.split())
    told.append((code, error.getvalue()))
print(json.dumps(told))
"""
REDESIGN = """
import random
from lakewright.engineer import DesignSpace, Engineer, Environment, Knob, Problem, Verdict

class Sums(Environment):
    space = DesignSpace((1, 2, 3), [Knob(name="terms", low=2, high=4, step=1, reach=1, whole=True)])

    def make(self, cell, rng):
        terms = [rng.randrange(10**cell.stratum) for _ in range(cell["terms"])]
        return Problem("+".join(map(str, terms)) + "=", str(sum(terms)))

    def judge(self, problem, answer):
        return Verdict(True, 1.0) if answer == problem.answer else Verdict(False, 0.0, "wrong")

engineer = Engineer(Sums())
problems = engineer.draw(32)
engineer.observe(engineer.environment.groups(problems, [[one.answer, "?"] for one in problems]))
engineer.redesign().summary()
"""
WATCH = """
import atexit, faulthandler, json, logging, os, random, signal, sys, threading, warnings
import numpy

hooks = []
sys.addaudithook = hooks.append

def describe_process():
    return {
        "native threads": len(os.listdir("/proc/self/task")),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "children": open(f"/proc/self/task/{os.getpid()}/children").read(),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "paths": list(sys.path),
        "signals": {number.name: str(signal.getsignal(number)) for number in signal.Signals},
        "alarm": signal.getitimer(signal.ITIMER_REAL),
        "audit hooks": len(hooks),
        "warnings": [str(one) for one in warnings.filters] + [str(warnings.showwarning)],
        "exceptions": [str(one) for one in (sys.excepthook, sys.unraisablehook, threading.excepthook)],
        "ends": [str(os._exit), str(sys.exit), str(os.fork), str(os.kill)],
        "tracing": [str(one) for one in (sys.gettrace(), sys.getprofile(), threading.gettrace())],
        "importing": [str(one) for one in (*sys.meta_path, *sys.path_hooks, __import__)],
        "faults": faulthandler.is_enabled(),
        "logging": [str(one) for one in (*logging.root.handlers, logging.root.level)],
        "recursion": sys.getrecursionlimit(),
        "streams": [str(one) for one in (sys.stdin, sys.stdout, sys.stderr)],
        "chance": [hash(random.getstate()), hash(numpy.random.get_state()[1].tobytes())],
        "numbers": [str(numpy.geterr()), str(numpy.get_printoptions())],
    }

before = describe_process()
%s
after = describe_process()
print(json.dumps({name: [before[name], after[name]] for name in before if before[name] != after[name]}))
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def run_fresh(program: str, folder: Path, *, hidden: set[str] = frozenset()) -> list[str]:
    """The lines that a program prints in a process of its own where modules cannot be imported."""
    words = [sys.executable, "-c", HIDE % (set(hidden),) + program]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, env=surroundings(), check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def run_commands(commands: list[str], folder: Path, before: str = "") -> list[tuple[int, str]]:
    """The exit code of each command without any extra, and what it printed on standard error."""
    return json.loads(run_fresh(before + RUN_COMMANDS % (commands,), folder, hidden=HEAVY)[-1])


NEEDING = {
    "solve rows.jsonl --out solved.parquet": ("pyarrow", "lake"),
    "run --out runs/a": ("transformers", "lake"),
    "settings grpo": ("tabulate", "lake"),
    "engineer show runs/a --stage 0": ("jax", "lake"),
    "view .": ("uvicorn", "view"),
    "view bundle . --out site": ("jax", "view"),
    "sweep plot sweeps/a": ("pyarrow", "sweeps"),
    f"check {ADDITION} --executor ray": ("ray", "cluster"),
    "check reasoning_gym:chain_sum": ("reasoning_gym", "reasoning-gym"),
    "engineer begin e --environment lake": ("jax", "lake"),
    f"engineer begin e --environment {ADDITION} --teacher endpoint endpoint.url=http://localhost/v1 endpoint.model=x": (
        "httpx2",
        "endpoint",
    ),
}


def test_a_command_whose_extra_is_missing_says_which(tmp_path):
    told = run_commands(list(NEEDING), tmp_path)
    for (code, line), (command, (package, extra)) in zip(told, NEEDING.items(), strict=True):
        assert code == 2, (command, line)
        assert f" needs {package}, which is not installed; pip install 'lakewright[{extra}]'\n" in line
        assert line.count("\n") == 1


def test_the_commands_of_an_engineer_need_no_extra(tmp_path):
    of_a_folder = [f"engineer {word} e" for word in ("next", "status", "log")]
    commands = ["--help", "engineer --help", "new environment rhymes", f"engineer begin e --environment {ADDITION}"]
    assert run_commands(commands + of_a_folder, tmp_path) == [[0, ""]] * 7


def test_a_module_is_named_with_the_first_extra_that_brings_it():
    for module, extra in (("jax.numpy", "lake"), ("uvicorn", "view"), ("yaml", "lake"), ("llvmlite.binding", "lake")):
        line = describe_missing(ModuleNotFoundError(name=module), "it")
        assert line.endswith(f"is not installed; pip install 'lakewright[{extra}]'"), module
    assert describe_missing(ModuleNotFoundError(name="a_package_of_nobody"), "it") is None
    assert describe_missing(ModuleNotFoundError("without a name"), "it") is None
    assert set(NAMES.values()) <= {found.name for found in REQUIRED if found.marker}


def test_an_import_in_a_block_names_the_extra():
    told = r"^the teacher x needs nowhere, which is not installed; pip install 'lakewright\[few\]'$"
    with pytest.raises(InputError, match=told), naming_extra("the teacher x", "few"):
        import nowhere  # noqa: F401


ADAPTERS = ("trl", "verl", "gymnasium")
IMPORT_ADAPTERS = """
for name in %r:
    try:
        __import__(f"lakewright.experiments.trainers.{name}")
    except ImportError as error:
        print(error)
"""


def test_an_adapter_that_is_imported_without_its_package_is_an_import_error_with_the_extra(tmp_path):
    lines = run_fresh(IMPORT_ADAPTERS % (ADAPTERS,), tmp_path, hidden=HEAVY)
    for line, name in zip(lines, ADAPTERS, strict=True):
        who, _, told = line.partition(" needs ")
        assert who == f"lakewright.experiments.trainers.{name}"
        assert told.endswith(f", which is not installed; pip install 'lakewright[{name}]'")


IMPORTS = "import lakewright.experiments.trainers.folder\nfrom lakewright.engineer import Engineer\n"


FOLDER = f"""
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.source import ProblemSource

folder = EngineerFolder.begin("e", environment={ADDITION!r}, held_out=5)
recorder = OutcomeRecorder("e")
for problem in ProblemSource("e").take(32):
    recorder.record(problem, [problem.answer, "?"])
assert folder.next().version == 1
"""


@pytest.mark.parametrize("program", [IMPORTS, REDESIGN, FOLDER], ids=["an import", "a redesign", "a folder"])
def test_the_process_is_as_it_was_after(program, tmp_path):
    changed, modules = map(json.loads, run_fresh(WATCH % program, tmp_path))
    assert changed == {}
    assert HEAVY & set(modules) == set()


WINDOWS = """
import os, signal
for name in ("sched_getaffinity", "fork", "O_DIRECTORY", "O_CLOEXEC", "pidfd_open", "register_at_fork", "setsid"):
    delattr(os, name)
for name in ("killpg", "getuid", "geteuid", "sysconf", "statvfs", "getloadavg", "nice", "fchmod", "pipe2"):
    delattr(os, name)
for name in ("SIGALRM", "SIGKILL", "SIGHUP", "SIGUSR1", "SIGCHLD", "setitimer", "getitimer", "ITIMER_REAL", "alarm"):
    delattr(signal, name)
HIDDEN |= {"fcntl", "resource", "pwd", "grp", "termios"}
"""
FOLDER_PARTS = ("folder", "source", "recorder", "gymnasium", "openenv")


def test_what_windows_lacks_is_not_needed_to_import_and_to_redesign(tmp_path):
    imports = "".join(f"import lakewright.experiments.trainers.{part}\n" for part in FOLDER_PARTS)
    run_fresh(WINDOWS + imports + REDESIGN, tmp_path, hidden=HEAVY - {"gymnasium"})
    told = run_commands(["--help", f"engineer begin e --environment {ADDITION}"], tmp_path, WINDOWS)
    assert [code for code, _ in told] == [0, 2]
    assert told[1][1].endswith("/e: Windows can't lock it (no flock); use Linux, macOS or WSL\n")


def test_without_a_count_of_its_own_cores_a_folder_works_as_on_macos(tmp_path):
    commands = [f"engineer begin e --environment {ADDITION} --held-out 3", "engineer next e", "engineer status e"]
    assert run_commands(commands, tmp_path, "import os\ndel os.sched_getaffinity, os.pidfd_open\n") == [[0, ""]] * 3


def test_text_is_utf_8_where_the_system_has_another_encoding():
    found = [sys.executable, "-m", "ruff", "check", "--quiet", "--preview", "--select=PLW1514", *WINGS, "docs/examples"]
    done = subprocess.run(found, cwd=HOUSE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    doors = [door for wing in WINGS for door in (HOUSE / wing).rglob("*.pyi")]
    assert [door for door in doors if not door.read_bytes().isascii()] == [], (
        "lazy_loader reads these as the system does"
    )
