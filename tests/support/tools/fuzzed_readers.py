"""Readers of files under coverage-guided fuzzing: `python -m tests.support.tools.fuzzed_readers READER FOLDER SECONDS`.

Atheris and libFuzzer change the inputs that reach new lines of our code, byte by byte and as trees of JSON, and keep
them in FOLDER/corpus. A reader may raise InputError and nothing else; whatever else comes is in
FOLDER/found, one input and its traceback for each place in the code. SECONDS are of processor time.
"""

import contextlib
import json
import os
import random
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atheris

LARGEST = 1 << 14  # bytes of an input
SLOWEST, MOST_MEMORY = 600, 8192  # seconds and MiB of one input; the machine may be busy
AS_BYTES = 0.3  # of the changes
ODD = [None, True, False, 0, -1, 1, 2, 3, 5, 8, 17, 2**31, 2**63, 2**64, -(2**63), 10**40]
ODD += [0.0, -0.5, 0.5, 1.0, 1e308, 1e-320, float("nan"), float("inf")]
ODD += ["", "a", "H", "...", "\x00", "\ud800", "é", "\U0001f600", "x" * 300, "3", "0.5", "1e999", "null", "..", "a\nb"]
ODD += [[], {}, [[]], [None], [0], [""], {"": 0}, {"3": {}}, [1, 2, 3], [[0, 0], [0, 1]]]


def changed(data: bytes, size: int, seed: int) -> bytes:
    """Another input made of one: libFuzzer's `custom_mutator`."""
    rng = random.Random(seed)
    mark, text = (data[:1], data[1:]) if data[:1].isdigit() else (b"", data)
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return atheris.Mutate(data, size)
    if rng.random() < AS_BYTES:
        return atheris.Mutate(data, size)
    for _ in range(rng.randint(1, 3)):
        tree = _changed_tree(tree, rng)
    return (mark + json.dumps(tree).encode())[:size]


def _changed_tree(tree: Any, rng: random.Random) -> Any:
    """The tree with one change in a place reached by chance."""
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else []
    if not inner or rng.random() < 0.15:
        return rng.choice([tree, [tree], {"a": tree}, rng.choice(ODD), rng.choice(ODD), rng.choice(ODD)])
    if isinstance(tree, list):
        place, change = rng.randrange(len(tree)), rng.random()
        if change < 0.1:
            return tree[:place] + tree[place + 1 :]
        again = [tree[place]] if change < 0.2 else []
        return [*tree[:place], *again, _changed_tree(tree[place], rng), *tree[place + 1 :]]
    name, change = rng.choice(sorted(tree)), rng.random()
    rest = {other: value for other, value in tree.items() if other != name}
    if change < 0.05:
        return rest
    if change < 0.1:
        return rest | {rng.choice([*tree, "a", "", "7", name + "x"]): tree[name]}
    return rest | {name: rng.choice(list(tree.values())) if change < 0.2 else _changed_tree(tree[name], rng)}


class Hunt:
    """The inputs that were tried, and what was found."""

    def __init__(self, name: str, read: Callable[[bytes], object], folder: Path, seconds: float) -> None:
        self.name, self.read, self.folder, self.seconds = name, read, folder, seconds
        self.inputs, self.found = 0, set[tuple]()
        self.begun = time.process_time()

    def __call__(self, data: bytes) -> None:
        from lakewright.core_jax.errors import InputError

        if (spent := time.process_time() - self.begun) > self.seconds:
            print(f"{self.name}: {self.inputs} inputs in {spent:.0f} processor seconds; found {len(self.found)}")
            sys.stdout.flush()
            os._exit(bool(self.found))
        self.inputs += 1
        try:
            self.read(data)
        except InputError:
            pass  # in one line, as `tests/core_jax/test_errors.py` shows
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._keep(data, error)

    def _keep(self, data: bytes, error: BaseException) -> None:
        """Keeps an input, and why, unless one did the same before."""
        frames = traceback.extract_tb(error.__traceback__)
        sign = type(error).__name__, *((frame.filename, frame.lineno) for frame in frames[-2:])
        if sign not in self.found:
            self.found.add(sign)
            place = self.folder / "found" / f"{len(self.found):03d}"
            place.with_suffix(".input").write_bytes(data)
            place.with_suffix(".txt").write_text("".join(traceback.format_exception(error)), errors="backslashreplace")


def main() -> None:
    """Fuzzes one reader."""
    name, folder, seconds = sys.argv[1], Path(sys.argv[2]).absolute(), float(sys.argv[3])
    with atheris.instrument_imports(include=["lakewright"]):
        from tests.support.tools.readers_to_fuzz import READERS
    with contextlib.chdir(folder):
        read, seeds = READERS[name]()
        for part in ("corpus", "found"):
            (folder / part).mkdir(exist_ok=True)
        for number, seed in enumerate(seeds):
            (folder / "corpus" / f"seed-{number}").write_bytes(seed)
        limits = [f"-max_len={LARGEST}", f"-timeout={SLOWEST}", f"-rss_limit_mb={MOST_MEMORY}", "-verbosity=0"]
        words = [*limits, f"-artifact_prefix={folder}/found/", str(folder / "corpus")]
        atheris.Setup([sys.argv[0], *words], Hunt(name, read, folder, seconds), custom_mutator=changed)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
