"""Flags of JAX that a process has set for its own programs: boards, labels, verdicts and episodes stay the same."""

import functools
import hashlib
import subprocess
import sys
import types
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.generator import check_reachable, draw_free, generate, manifest_of
from lakewright.core_jax.lake import EnvParams, reset, step, verdict, verify
from lakewright.core_jax.solver import solve
from lakewright.core_jax.statistics import features
from lakewright.core_jax.support import jax_settings
from lakewright.core_jax.types import Board
from tests.support.deep import keep_quick
from tests.support.processes.commands import surroundings

FLAGS: dict[str, object] = {
    "jax_enable_x64": True,
    "jax_numpy_dtype_promotion": "strict",
    "jax_numpy_rank_promotion": "raise",
    "jax_transfer_guard": "disallow",
    "jax_threefry_partitionable": False,
    "jax_default_prng_impl": "rbg",
    "jax_enable_custom_prng": True,
    "jax_legacy_prng_key": "error",
    "jax_random_seed_offset": 7,
    "jax_default_matmul_precision": "bfloat16",
    "jax_debug_nans": True,
    "jax_debug_infs": True,
    "jax_check_tracer_leaks": True,
    "jax_disable_jit": True,
    "jax_no_tracing": True,
    "jax_no_execution": True,
    "jax_explicit_x64_dtypes": "error",
    "jax_enable_checks": True,
}
RECOMPILED = ("jax_explicit_x64_dtypes", "jax_random_seed_offset")  # programs are compiled again: tried with all others
QUICK = (
    "jax_enable_x64",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_threefry_partitionable",
)
WITH_LIMITS = (*QUICK[1:], "jax_transfer_guard", "jax_disable_jit")
OF_THE_CALLER = ("jax_no_tracing", "jax_no_execution", "jax_transfer_guard", "jax_disable_jit")  # stop any program


@pytest.fixture
def set_flag() -> Iterator[Callable[[str], None]]:
    before = {}

    def set_one(name: str) -> None:
        before[name] = jax.config.values[name]
        jax.config.update(name, FLAGS[name])

    yield set_one
    for name, value in before.items():
        jax.config.update(name, value)


def digest(tree: object) -> str:
    """A digest of all arrays, of their types and shapes too."""
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
    return hashlib.sha256(b"".join(repr((a.dtype, a.shape)).encode() + a.tobytes() for a in arrays)).hexdigest()


def make_all() -> dict[str, str]:
    """Digests of what the core makes: boards of two and three agents, labels, statistics and verdicts."""
    found: dict[str, object] = {}
    for agents, wait_ratio in ((2, 0.5), (3, 0.5)):
        config = EnvConfig.single(4, agents, 0.2, wait_ratio)
        check_reachable(config, 3)
        batch = generate(config, 3, 8)[4]
        found[f"boards of {agents}"] = batch.boards, batch.labels, batch.index
        boards = draw_free(4, agents, 4, seed=5, first=2, count=40)
        labels = solve(boards, makespan_plans=True)
        measured = features(boards, labels)
        found[f"free boards of {agents}"] = boards
        found[f"labels of {agents}"] = labels
        found[f"statistics of {agents}"] = [value for value in measured.values() if value.dtype != object]
        found[f"verdicts of {agents}"] = verify(boards, labels.moves)
    return {name: digest(tree) for name, tree in found.items()}


@functools.cache
def make_plainly() -> dict[str, str]:
    return make_all()


@pytest.mark.parametrize(
    "flag",
    keep_quick([flag for flag in FLAGS if flag not in RECOMPILED], WITH_LIMITS),  # the test below has all at once
)
def test_no_flag_of_jax_changes_what_the_core_makes(flag, set_flag):
    expected = make_plainly()
    set_flag(flag)
    assert make_all() == expected


def test_all_flags_of_jax_at_once_change_nothing_that_the_core_makes(set_flag):
    expected = make_plainly()
    for flag in FLAGS:
        set_flag(flag)
    assert make_all() == expected
    assert jax.config.values["jax_enable_x64"], "the process keeps its own flags"
    assert jax.config.values["jax_debug_nans"]


@functools.cache
def sample_plans() -> tuple[Board, np.ndarray]:
    boards = draw_free(4, 2, 2, seed=1, first=0, count=16)
    return boards, np.random.default_rng(0).integers(-1, 6, (16, 2, 12)).astype(np.int8)


def play_in_own_program() -> str:
    """A digest of episodes and verdicts of a program that a user compiles, under the user's flags."""
    boards, moves = sample_plans()
    params = EnvParams(jax.tree.map(jnp.asarray, boards), jnp.int32(5))
    keys = jax.random.wrap_key_data(np.arange(24, dtype=np.uint32).reshape(12, 2), impl="threefry2x32")

    def play(key, actions):
        begin = reset(key, params)
        return begin, jax.lax.scan(lambda state, action: step(key, state, action, params)[1::-1], begin[1], actions)

    def play_all(keys, actions, boards, moves):
        return jax.vmap(play)(keys, actions), jax.vmap(verdict)(boards, moves)

    actions = moves[:12].transpose(0, 2, 1).astype(np.int32)
    return digest(jax.jit(play_all)(keys, actions, boards, moves))


@pytest.mark.parametrize("flag", keep_quick([flag for flag in FLAGS if flag not in OF_THE_CALLER], QUICK[:2]))
def test_no_flag_of_jax_changes_the_episodes_and_verdicts_of_a_users_own_program(flag, set_flag):
    with jax.debug_key_reuse(False):  # each episode's key serves all its steps here
        expected = play_plainly()
        set_flag(flag)
        assert play_in_own_program() == expected


@functools.cache
def play_plainly() -> str:
    return play_in_own_program()


def test_a_manifest_names_the_settings_that_boards_were_drawn_with_whatever_the_flags(set_flag):
    config = EnvConfig.single(4, 2, 0.2, 0.5)
    before = manifest_of(config, 0, 1, [])
    for flag in ("jax_enable_x64", "jax_threefry_partitionable"):
        set_flag(flag)
    assert manifest_of(config, 0, 1, []) == before
    assert before.jax == {
        "jax_enable_x64": "False",
        "jax_numpy_dtype_promotion": "standard",
        "jax_threefry_partitionable": "True",
    }


def test_a_platform_that_is_not_there_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(jax_settings, "_own", [])

    def find_no_platform():
        raise RuntimeError("Unable to initialize backend 'cuda': no GPU\nand more")

    monkeypatch.setattr(jax, "local_devices", find_no_platform)
    with pytest.raises(ValueError, match=r"JAX_PLATFORMS is '\w+': Unable .* no GPU; set it to cpu") as refused:
        draw_free(3, 1, 0, seed=0, first=0, count=1)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("flag", ["jax_platforms", "jax_platform_name", "jax_default_device"])
def test_the_flag_that_names_a_missing_platform_is_named(monkeypatch, flag):
    def find_platforms(backend="gpu"):
        raise RuntimeError(f"Unknown backend: {backend}")

    values = dict.fromkeys(("jax_platforms", "jax_platform_name", "jax_default_device")) | {flag: "gpu"}
    monkeypatch.setattr(jax_settings, "_own", [])
    monkeypatch.setattr(jax, "config", types.SimpleNamespace(values=values))
    monkeypatch.setattr(jax, "local_devices", find_platforms)
    with pytest.raises(ValueError, match=rf"{flag.upper()} is 'gpu': Unknown backend: gpu; set it to cpu"):
        draw_free(3, 1, 0, seed=0, first=0, count=1)


WITH_FLAGS = {name.upper(): str(value) for name, value in FLAGS.items()}
GENERATE = "generate --size 4 --agents {agents} --hole-ratio 0.2 --wait-ratio 0.3 --count 20 --seed 3 --out {out}"
SWEEP = "sizes = [4]\nagents = [2, 3]\nhole_ratios = [0.2]\nboards = 40\nshard = 20\n"


def run_command(words: str, **flags: str) -> subprocess.CompletedProcess[str]:
    words = f"{sys.executable} -m lakewright.experiments.cli {words}"
    return subprocess.run(words.split(), capture_output=True, text=True, env=surroundings() | flags)


@pytest.mark.deep
def test_the_commands_write_the_same_bytes_with_all_flags_of_jax_set(tmp_path):
    (tmp_path / "spec.toml").write_text(SWEEP)
    for kind, flags in (("plain", {}), ("flags", WITH_FLAGS)):
        folder = tmp_path / kind
        folder.mkdir()
        for agents in (2, 3):
            out = folder / f"{agents}.jsonl"
            for command in (
                GENERATE.format(agents=agents, out=out),
                f"solve {out} --out {folder}/solved{agents}.parquet --makespan-plans",
                f"verify {out} --out {folder}/verdicts{agents}.jsonl",
            ):
                assert run_command(command, **flags).returncode == 0, command
        assert run_command(f"sweep run {tmp_path}/spec.toml --out {folder}/sweep", **flags).returncode == 0
    made = sorted(path.relative_to(tmp_path / "plain") for path in (tmp_path / "plain").rglob("*.*"))
    compared = [path for path in made if path.suffix in (".jsonl", ".parquet") or path.name.endswith("manifest.json")]
    assert len(compared) >= 11
    for path in compared:
        assert (tmp_path / "plain" / path).read_bytes() == (tmp_path / "flags" / path).read_bytes(), path


@pytest.mark.deep
@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("JAX_PLATFORMS", "cuda"),
        ("JAX_DEFAULT_DEVICE", "gpu"),
        ("JAX_PLATFORMS", "none"),
        ("JAX_ENABLE_X64", "maybe"),
        ("JAX_TRANSFER_GUARD", "no"),
    ],
)
def test_a_flag_of_jax_that_cannot_be_is_refused_by_a_command_in_one_line(flag, value, tmp_path):
    found = run_command(GENERATE.format(agents=2, out=tmp_path / "out.jsonl"), **{flag: value})
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    assert flag.lower() in found.stderr.lower()
    assert value in found.stderr
