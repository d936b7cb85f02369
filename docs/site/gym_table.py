"""The table of reasoning-gym's curricula, docs/data/reasoning_gym.json, and its form in docs/reasoning-gym.md.

python docs/site/gym_table.py sweep   draws and judges problems of every curriculum, which takes minutes and needs the
                                      package reasoning-gym; each in a process of its own, which is ended if it hangs
python docs/site/gym_table.py         writes the page from the table
"""

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
DATA, PAGE = DOCS / "data" / "reasoning_gym.json", DOCS / "reasoning-gym.md"
SECONDS = 2.0  # that a problem may take
LONGEST = 120  # seconds that a task may take
COUNT = 30  # problems of the easiest cell
Found = dict[str, Any]


def main(words: list[str]) -> None:
    """Sweeps, checks one task, or writes the page."""
    if words[:1] == ["task"]:
        print(json.dumps(check_task(words[1])))
    elif words[:1] == ["sweep"]:
        sweep(words[1:])
    PAGE.write_text(make_page(PAGE.read_text(), json.loads(DATA.read_text()))) if words[:1] != ["task"] else None


def sweep(names: list[str]) -> None:
    """Checks every curriculum, or those named, and writes the table."""
    from importlib.metadata import version

    from lakewright.experiments.environments.gym_tasks import load_gym

    curricula = names or sorted(load_gym().factory.CURRICULA)
    before = json.loads(DATA.read_text())["tasks"] if names else {}
    tasks = before | {name: check_apart(name) for name in curricula}
    table = {"reasoning_gym": version("reasoning-gym"), "seconds": SECONDS, "tasks": dict(sorted(tasks.items()))}
    DATA.write_text(json.dumps(table, indent=1) + "\n")


def check_apart(name: str) -> Found:
    """What `check_task` finds, in a process of its own; where that hangs or dies, that."""
    try:
        done = subprocess.run(
            [sys.executable, __file__, "task", name], capture_output=True, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        return {"bug": f"hangs for more than {LONGEST} s in code that cannot be stopped"}
    if done.returncode:
        return {"bug": done.stderr.strip().splitlines()[-1][:200] if done.stderr.strip() else "its process died"}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def check_task(name: str) -> Found:
    """Ladders, places that can be drawn, kind of the scores, and speed of a task; `bug` where it is of no use."""
    from lakewright.experiments.environments.gym_tasks import GymTask, NoProblemError

    task = GymTask(name, {}, SECONDS)
    start = task.places_at(0)
    found: Found = {
        "ladders": {ladder.name: list(ladder.labels) for ladder in task.ladders.values()},
        "evaluates": task.evaluates,
    }
    try:
        begun = time.perf_counter()
        entries = [task.draw(start, number) for number in range(COUNT)]
        found["per_second"] = COUNT / (time.perf_counter() - begun)
        again = GymTask(name, {}, SECONDS)
        if [again.draw(start, number).question for number in range(COUNT)] != [entry.question for entry in entries]:
            return found | {"bug": "equal seeds give other problems"}
    except NoProblemError as error:
        return found | {"bug": f"easiest place: {error}"}
    right = [task.score(start, number, entry.answer) for number, entry in enumerate(entries)]
    found["own_answers"] = sum(score == 1 for score in right) / COUNT
    found["distinct"] = len({entry.question for entry in entries})
    found["scores"], found["raises"] = describe_scores(task, start, entries)
    found["drawable"] = {
        name: [not task.can_draw((*start[:at], place, *start[at + 1 :])) for place in range(len(ladder.rungs))]
        for at, (name, ladder) in enumerate(task.ladders.items())
    }
    found["levels"] = [not task.can_draw(task.places_at(level)) for level in range(task.top + 1)]
    if found["own_answers"] < 1:
        found["bug"] = f"its own answer earns the full score in {found['own_answers']:.0%} of the problems only"
    return found


def describe_scores(task: Any, start: Any, entries: list[Any]) -> tuple[str, bool]:
    """Whether wrong answers earn a part, and whether the scorer raises on some text."""
    import reasoning_gym.dataset

    data_set = task._data_set(start)
    base = type(data_set).score_answer is reasoning_gym.dataset.ProceduralDataset.score_answer
    earned, raises = set(), False
    for number, entry in enumerate(entries[:10]):
        other = entries[number - 1].answer
        for text in (f"{entry.answer} or {other}", other, entry.answer[:-1], "0", "no idea", "[[1, 2], 3]", "1/0"):
            earned.add(task.score(start, number, text))
            if not task.evaluates:
                try:
                    data_set.score_answer(text, entry.raw)
                except Exception:
                    raises = True
    kind = "exact" if earned <= {0.0, 1.0} else "graded"
    return "substring" if base else kind, raises


def make_page(page: str, table: Found) -> str:
    """The page with the table between its marks."""
    usable = [name for name, found in table["tasks"].items() if "bug" not in found]
    lines = [
        f"Of {len(table['tasks'])} curricula of reasoning-gym {table['reasoning_gym']}, {len(usable)} can be used.",
        "",
        "| task | strata by default | knobs | drawable places, of each ladder alone | levels | scores | problems/s |",
        "|---|---|---|---|---|---|---|",
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
    ladders = {name: labels for name, labels in found["ladders"].items()}
    by = next((ladder for ladder, labels in ladders.items() if 2 <= len(labels) <= 16), "task")
    knobs = ", ".join(f"`{ladder}`" for ladder in ladders if ladder != by) or "none"
    ranges = ", ".join(f"{ladder} {list_places(found['drawable'][ladder])}" for ladder in ladders)
    scores = found["scores"] + ", evaluates" * found["evaluates"] + ", raises" * found["raises"]
    speed = f"{found['per_second']:.2g}" if found["per_second"] < 100 else f"{round(found['per_second'], -2):.0f}"
    strata = f"`{by}`" if by != "task" else "the task"
    return f"| `{name}` | {strata} | {knobs} | {ranges} | {list_places(found['levels'])} | {scores} | {speed} |"


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
