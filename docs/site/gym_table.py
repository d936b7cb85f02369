"""The table of reasoning-gym's curricula, docs/data/reasoning_gym.json, and its form in docs/reasoning-gym.md.

python docs/site/gym_table.py sweep   draws and judges problems of every curriculum, which takes minutes and needs the
                                      package reasoning-gym; each in a process of its own, which is ended if it hangs
python docs/site/gym_table.py check   runs `lakewright check` on every curriculum that can be used, or those named
python docs/site/gym_table.py         writes the page from the table
"""

import contextlib
import itertools
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
DATA, PAGE = DOCS / "data" / "reasoning_gym.json", DOCS / "reasoning-gym.md"
SECONDS = 2.0  # that a problem may take
LONGEST = 120  # seconds that a task may take
CHECK = ("--seconds", "1", "--limit", "20")
COUNT = 30  # problems of the easiest cell
Found = dict[str, Any]


def main(words: list[str]) -> None:
    """Sweeps, checks one task, or writes the page."""
    if words[:1] == ["task"]:
        Path(words[2]).write_text(json.dumps(check_task(words[1])), encoding="utf-8")
        return
    if words[:1] == ["sweep"]:
        sweep(words[1:])
    if words[:1] == ["check"]:
        check_all(words[1:])
    PAGE.write_text(make_page(PAGE.read_text(), json.loads(DATA.read_text())))


def sweep(names: list[str]) -> None:
    """Checks every curriculum, or those named, and writes the table."""
    from importlib.metadata import version

    from tqdm import tqdm

    from lakewright.experiments.environments.gym_tasks import load_gym

    curricula = names or sorted(load_gym().factory.CURRICULA)
    before = json.loads(DATA.read_text())["tasks"] if names else {}
    tasks = before | {name: check_apart(name) for name in tqdm(curricula)}
    table = {"reasoning_gym": version("reasoning-gym"), "seconds": SECONDS, "tasks": dict(sorted(tasks.items()))}
    DATA.write_text(json.dumps(table, indent=1) + "\n")


def check_all(names: list[str]) -> None:
    """Runs `lakewright check` on curricula, and writes into the table which passed, and the first fault of others."""
    table = json.loads(DATA.read_text())
    usable = [name for name, found in table["tasks"].items() if "bug" not in found]
    checked = dict(table.get("checked", {}))
    for name in names or usable:
        command = ["lakewright", "check", f"reasoning_gym:{name}", *CHECK, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        report = json.loads(done.stdout) if done.stdout.strip() else {"faults": [{"problem": done.stderr[-200:]}]}
        checked[name] = "".join(fault["problem"] for fault in report["faults"][:1])
    DATA.write_text(json.dumps(table | {"checked": dict(sorted(checked.items()))}, indent=1) + "\n")


def check_apart(name: str) -> Found:
    """What `check_task` finds, in a process of its own; where that hangs or dies, that."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found.json"
        command = [sys.executable, __file__, "task", name, str(found)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
        except subprocess.TimeoutExpired:
            return {"bug": f"hangs for more than {LONGEST} s in code that cannot be stopped"}
        if done.returncode:
            return {"bug": (done.stderr.strip().splitlines() or ["its process died"])[-1][:200]}
        return dict(json.loads(found.read_text()))


def check_task(name: str) -> Found:
    """Ladders, places that can be drawn, kind of the scores, and speed of a task; `bug` where it is of no use."""
    from lakewright.core_jax.errors import InputError
    from lakewright.experiments.environments.gym_tasks import GymTask

    task = GymTask(name, {}, SECONDS, here=True)
    try:
        start = task.places_at(task.find_easiest())
    except InputError as error:
        return {"bug": str(error).partition("drawn (")[2].rpartition(");")[0]}
    found: Found = {
        "ladders": {ladder.name: list(ladder.labels) for ladder in task.ladders.values()},
        "evaluates": task.evaluates,
    }
    task.draw(start, 0)  # which makes the data set
    begun = time.perf_counter()
    entries = draw_all(task, start)
    found["per_second"] = len(entries) / (time.perf_counter() - begun)
    if draw_all(GymTask(name, {}, SECONDS, here=True), start) != entries:
        return found | {"bug": "equal seeds give other problems"}
    known = [(number, entry.answer) for number, entry in entries.items() if entry.answer]
    right = sum(task.score(start, number, answer) == 1 for number, answer in known)
    found["own_answers"] = right / len(known) if known else None
    found["distinct"] = len({entry.question for entry in entries.values()})
    found["scores"], found["raises"] = describe_scores(task, start, entries)
    found["drawable"] = {
        name: [not task.explain((*start[:at], place, *start[at + 1 :])) for place in range(len(ladder.rungs))]
        for at, (name, ladder) in enumerate(task.ladders.items())
    }
    found["levels"] = [not task.explain(task.places_at(level)) for level in range(task.top + 1)]
    if all(task.score(start, number, "no idea") == 1 for number in entries):
        found["bug"] = "its scorer gives any text the full score"
    others = [
        task.score(start, number, other) for (number, own), (_, other) in itertools.pairwise(known) if own != other
    ]
    if len(others) > 5 and min(others) == 1:
        found["bug"] = "its scorer gives the full score to the answers of other problems"
    if known and right < len(known):
        found["bug"] = f"its own answer earns the full score in {found['own_answers']:.0%} of the problems only"
    return found


def draw_all(task: Any, places: Any) -> dict[int, Any]:
    """The problems of the numbers 1 to COUNT, without those that give none."""
    from lakewright.experiments.environments.gym_tasks import NoProblemError

    found = {}
    for number in range(1, COUNT + 1):
        with contextlib.suppress(NoProblemError):
            found[number] = task.draw(places, number)
    return found


def describe_scores(task: Any, start: Any, entries: dict[int, Any]) -> tuple[str, bool]:
    """Whether wrong answers earn a part, and whether the scorer raises on some text."""
    import reasoning_gym.dataset

    data_set = task._choose_data_set(start)
    base = type(data_set).score_answer is reasoning_gym.dataset.ProceduralDataset.score_answer
    earned, raises = set(), False
    other = ""
    for number, entry in list(entries.items())[:10]:
        for text in (f"{entry.answer} or {other}", other, entry.answer[:-1], "0", "no idea", "[[1, 2], 3]", "1/0"):
            earned.add(task.score(start, number, text))
            if not task.evaluates:
                try:
                    data_set.score_answer(text, entry.raw)
                except Exception:
                    raises = True
        other = entry.answer
    if not any(entry.answer for entry in entries.values()):
        return "no answer known", raises
    kind = "exact" if earned <= {0.0, 1.0} else "graded"
    return "substring" if base else kind, raises


def make_page(page: str, table: Found) -> str:
    """The page with the table between its marks."""
    usable = [name for name, found in table["tasks"].items() if "bug" not in found]
    faults = {name: fault for name, fault in table["checked"].items() if fault}
    words = f"All of these pass `lakewright check {' '.join(CHECK)}` unchanged."
    if faults:
        words = f"Of these {len(faults)} do not pass `lakewright check`: {'; '.join(map(': '.join, faults.items()))}."
    lines = [
        f"Of {len(table['tasks'])} curricula of reasoning-gym {table['reasoning_gym']}, {len(usable)} can be used.",
        words,
        "",
        "| task | strata by default | knobs | places of each ladder alone | levels | scores | distinct | problems/s |",
        "|---|---|---|---|---|---|---|---|",
        *(describe_task(name, table["tasks"][name]) for name in usable),
        "",
        "These cannot be used:",
        "",
        "| task | upstream bug |",
        "|---|---|",
        *(f"| `{name}` | {found['bug']} |" for name, found in table["tasks"].items() if "bug" in found),
    ]
    made = "<!-- made: docs/site/gym_table.py -->\n" + "\n".join(lines) + "\n<!-- end -->"
    return re.sub(r"<!-- made: .*?<!-- end -->", lambda _: made, page, flags=re.S)


def describe_task(name: str, found: Found) -> str:
    """The row of a task."""
    ladders = found["ladders"]
    by = next((ladder for ladder, labels in ladders.items() if 2 <= len(labels) <= 16), "task")
    knobs = ", ".join(f"`{ladder}`" for ladder in ladders if ladder != by) or "none"
    ranges = ", ".join(f"{ladder} {list_places(found['drawable'][ladder])}" for ladder in ladders)
    scores = found["scores"] + ", evaluates" * found["evaluates"] + ", raises" * found["raises"]
    speed = f"{found['per_second']:.2g}" if found["per_second"] < 100 else f"{round(found['per_second'], -2):.0f}"
    strata = f"`{by}`" if by != "task" else "the task"
    levels = list_places(found["levels"])
    return f"| `{name}` | {strata} | {knobs} | {ranges} | {levels} | {scores} | {found['distinct']} | {speed} |"


def list_places(drawable: list[bool]) -> str:
    """The places that can be drawn, such as `0-3 of 0-5`."""
    good, top = [place for place, drawn in enumerate(drawable) if drawn], len(drawable) - 1
    if len(good) == len(drawable):
        return f"0-{top}" if top else "0"
    runs: list[list[int]] = []
    for place in good:
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    listed = " ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    return f"{listed or 'none'} of 0-{top}"


if __name__ == "__main__":
    main(sys.argv[1:])
