"""Lines as verifiers 0.4.0 and prime-rl write them become outcomes: each once, for its own version, or left out."""

import json

import pytest

from lakewright.experiments.trainers import traces
from lakewright.experiments.trainers.source import ProblemSource
from lakewright.experiments.trainers.traces import Copied, record_traces
from lakewright.experiments.trainers.versions import HELD_OUT_SEED
from tests.support.refusals import refused
from tests.support.samples.engineer_folders import begin_engineer, read_groups


@pytest.fixture
def folder(tmp_path):
    return begin_engineer(tmp_path / "e", held_out=2)


def make_episode(problem, place, number, *, valid=True, **changes):
    """An episode's record, with the fields that are read and some that are not."""
    data = {
        "idx": place,
        "prompt": problem.prompt,
        "folder": "e",
        "seed": 0,
        "place": place,
        "version": problem.version,
    }
    trace = {
        "version": 1,
        "ok": True,
        "nodes": [],
        "rewards": {"verdict": {"score": float(valid), "weight": 1.0}, "style": {"score": 1.0, "weight": 0.5}},
        "metrics": {"valid": float(valid), "failure/no_number": 0.0, "failure/wrong": float(not valid)},
        "num_output_tokens": 3,
    }
    episode = {
        "id": f"{place} {number}",
        "env": {"id": "verifiers-engineer"},
        "task": {"type": "EngineerTask", "data": {**data, "split": "train"}, "key": f"train 0 {place}"},
        "group": {"id": f"g{place}"},
        "run": {"type": "train", "id": "r", "work": {"type": "train", "step": 1}},
        "ok": True,
        "traces": [trace],
    }
    for path, value in changes.items():
        part = episode
        *before, last = path.split("__")
        for name in before:
            part = part[int(name) if isinstance(part, list) else name]
        part[last] = value
    return episode


def write(path, *episodes, end="\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a") as file:
        file.write("\n".join(map(json.dumps, episodes)) + end)


def test_episodes_are_recorded_once_and_no_group_spans_two_versions(folder, tmp_path):
    run, source = tmp_path / "run", ProblemSource(folder.path)
    for step, places in enumerate(([0, 1], [2, 3], [1, 4]), 1):
        episodes = [make_episode(source[at], at, (step, n), valid=n == 0) for at in places for n in range(4)]
        write(run / "rollouts" / f"step_{step}" / "train" / "all" / "traces.jsonl", *episodes)
        write(run / "rollouts" / f"step_{step}" / "train" / "effective" / "traces.jsonl", *episodes[:2])
        assert record_traces(folder.path, run) == Copied(8, 10 * (step - 1) + 2, {})
        folder.next(step=step)
    assert folder.status().version == 3
    assert record_traces(folder.path, run) == Copied(0, 30, {})
    groups = read_groups(folder.path)
    assert {name: (len(lines), {line.version for line in lines}) for name, lines in groups.items()} == {
        "train 0 0 g0": (4, {0}),
        "train 0 1 g1": (8, {0}),
        "train 0 2 g2": (4, {1}),
        "train 0 3 g3": (4, {1}),
        "train 0 4 g4": (4, {2}),
    }
    found = [(line.valid, line.failure, line.reward, line.tokens) for line in groups["train 0 0 g0"]]
    assert found == [(True, "", 1.5, 3)] + [(False, "wrong", 0.5, 3)] * 3


def test_episodes_that_another_tool_wrote_again_mean_the_same(folder, tmp_path):
    problem = ProblemSource(folder.path)[0]
    floats = {"traces__0__num_output_tokens": 3.0, "task__data__place": 0.0, "task__data__seed": 0.0}
    missing = {"traces__0__num_output_tokens": None, "traces__0__metrics__failure/wrong": None, "run": None}
    write(
        tmp_path / "traces.jsonl",
        *(make_episode(problem, 0, n, **change) for n, change in enumerate((floats, missing))),
    )
    assert record_traces(folder.path, tmp_path / "traces.jsonl") == Copied(2, 0, {})
    lines = map(json.loads, (folder.path / "outcomes.jsonl").read_text().splitlines())
    assert [line.get("tokens", 0) for line in lines] == [3, 0]


def test_outcomes_that_were_recorded_twice_count_once(folder, tmp_path):
    problem, traces = ProblemSource(folder.path)[0], tmp_path / "traces.jsonl"
    write(traces, *(make_episode(problem, 0, number) for number in range(3)))
    record_traces(folder.path, traces)
    outcomes = folder.path / "outcomes.jsonl"
    outcomes.write_bytes(outcomes.read_bytes() * 2)
    assert folder.status().pending == 3


def test_a_line_that_is_being_written_waits(folder, tmp_path):
    problem, traces = ProblemSource(folder.path)[0], tmp_path / "traces.jsonl"
    write(traces, make_episode(problem, 0, 0), make_episode(problem, 0, 1), end="")
    assert record_traces(folder.path, traces) == Copied(1, 0, {})
    write(traces, end="\n")
    assert record_traces(folder.path, traces) == Copied(1, 1, {})


def count_episodes_read(monkeypatch):
    """A list that grows by each line that is decoded."""
    copy, found = traces.Copier.copy_episode, []

    def note_episode(copier, line):
        found.append(line)
        return copy(copier, line)

    monkeypatch.setattr(traces.Copier, "copy_episode", note_episode)
    return found


def test_lines_that_were_read_are_not_decoded_again(folder, tmp_path, monkeypatch):
    problem, file, read = ProblemSource(folder.path)[0], tmp_path / "traces.jsonl", count_episodes_read(monkeypatch)
    for number in range(3):
        write(file, make_episode(problem, 0, number), make_episode(problem, 0, number, ok=False, traces=[]))
        read.clear()
        assert record_traces(folder.path, file) == Copied(1, number, {"0 traces": number + 1})
        assert len(read) == 2
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(file.read_bytes())
    assert record_traces(folder.path, copy) == Copied(0, 3, {"0 traces": 3})
    assert folder.status().pending == 3


@pytest.mark.parametrize("changed", ["traces", "index", "outcomes"])
def test_what_was_changed_since_is_read_again_and_nothing_counts_twice(folder, tmp_path, monkeypatch, changed):
    problem, file = ProblemSource(folder.path)[0], tmp_path / "traces.jsonl"
    write(file, *(make_episode(problem, 0, number) for number in range(3)))
    record_traces(folder.path, file)
    outcomes, index = folder.path / "outcomes.jsonl", folder.path / "traces.index"
    if changed == "traces":
        file.write_text("")
        write(file, *(make_episode(problem, 0, number) for number in range(1, 4)))
    elif changed == "index":
        index.write_bytes(index.read_bytes()[:-1])
    else:
        outcomes.write_text("".join(outcomes.read_text().splitlines(keepends=True)[:-1]))
    read = count_episodes_read(monkeypatch)
    new = int(changed != "index")
    assert record_traces(folder.path, file) == Copied(new, 3 - new, {})
    assert len(read) == 3
    assert folder.status().pending == (4 if changed == "traces" else 3)


def test_held_out_problems_and_runs_without_groups(folder, tmp_path):
    traces = tmp_path / "run" / "traces.jsonl"
    for place, problem in enumerate(folder.held_out()):
        changed = {"task__data__split": "held_out", "group": None}
        write(traces, make_episode(problem, place, 0, **changed), make_episode(problem, place, 1, **changed, run=None))
    assert record_traces(folder.path, traces.parent) == Copied(4, 0, {})
    assert sorted(read_groups(folder.path)) == [
        "held_out 0 0 0 1",
        "held_out 0 0 r",
        "held_out 0 1 1 1",
        "held_out 0 1 r",
    ]
    assert folder.status().held_out == 4


@pytest.mark.parametrize(("failures", "told"), [(["bored"], "'bored'"), ([], "''"), (["wrong", "no_number"], "''")])
def test_an_invalid_answer_counts_though_its_failure_is_not_declared(folder, tmp_path, failures, told):
    (problem,) = ProblemSource(folder.path).take(1)
    metrics = {"valid": 0.0} | {f"failure/{name}": 1.0 for name in failures}
    write(tmp_path / "traces.jsonl", make_episode(problem, 0, 0, traces__0__metrics=metrics))
    assert record_traces(folder.path, tmp_path / "traces.jsonl") == Copied(1, 0, {})
    status = folder.status()
    assert (status.pending, sum(valid for _, valid in status.outcomes["0"].values())) == (1, 0)
    assert f"1 with a failure that is not declared (line 1: {told})" in status.complaint


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"id": 7}, "no episode"),
        ({"task__data": {"idx": 0, "prompt": "?"}}, "another taskset"),
        ({"task__data__place": -1}, "another taskset"),
        ({"traces": []}, "0 traces"),
        ({"traces__0__ok": False}, "not scored"),
        ({"traces__0__metrics": {}}, "not scored"),
        ({"traces__0__rewards__verdict": None}, "not scored"),
        ({"task__data__place": 5}, "an unknown place"),
        ({"task__data__place": 5, "task__data__split": "held_out"}, "an unknown place"),
        ({"task__data__version": 1}, "another version than the place has"),
        ({"traces__0__rewards__verdict": {"score": float("nan")}}, "no episode"),
        ({"traces__0__rewards__verdict": {"score": 1e300, "weight": 1e300}}, "a reward over 1e+100"),
        ({"traces__0__rewards__verdict": {"score": -1e160}}, "a reward over 1e+100"),
        ({"traces__0__rewards__verdict": {"score": 10**400}}, "no episode"),
        ({"traces__0__num_output_tokens": 10**30}, "no episode"),
        ({"task__data__place": 2**63}, "another taskset"),
        ({"task__data__seed": 10**200}, "another taskset"),
        ({"task__data__seed": 5}, "an unknown seed"),
        ({"task__data__seed": HELD_OUT_SEED}, "an unknown seed"),
        ({"group__id": "g" * 2**20}, "a trace that cannot be recorded"),
    ],
)
def test_what_is_no_outcome_is_left_out_and_the_rest_recorded(folder, tmp_path, changes, reason):
    problem, traces = ProblemSource(folder.path)[0], tmp_path / "traces.jsonl"
    write(traces, make_episode(problem, 0, 0, **changes), make_episode(problem, 0, 1))
    assert record_traces(folder.path, traces) == Copied(1, 0, {reason: 1})
    assert record_traces(folder.path, traces) == Copied(0, 1, {reason: 1})
    assert not (folder.path / "pins-0.jsonl").read_text().count('"place":5')
    assert [path.name for path in folder.path.glob("pins-*")] == ["pins-0.jsonl"]


@pytest.mark.parametrize("bad", [b"\x00" * 50, b"[" * 10_000, b"{}", b'"\xff"', b'{"id": "\\ud800"}', b"9" * 5_000])
def test_a_line_of_any_bytes_costs_none_of_the_others(folder, tmp_path, bad):
    problem, traces = ProblemSource(folder.path)[0], tmp_path / "traces.jsonl"
    write(traces, make_episode(problem, 0, 0))
    with open(traces, "ab") as file:
        file.write(bad + b"\n")
    write(traces, make_episode(problem, 0, 1))
    assert record_traces(folder.path, traces) == Copied(2, 0, {"no episode": 1})


def test_a_run_that_is_not_there_is_refused(folder, tmp_path):
    with refused("nowhere: ", "traces.jsonl"):
        record_traces(folder.path, tmp_path / "nowhere")
