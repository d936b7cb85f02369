"""The commands as a user runs them: files in, files out, one line per error, quiet in a pipe."""

import subprocess
import sys

import msgspec
import pytest

from lakewright.core_jax.rows import Row, read_all, solve_rows, write_rows
from tests.support.boards.generated_rows import BLOCKED, SMALL_COUNT, drawn_elsewhere, rows, shown, small_rows, unsolved
from tests.support.boards.sample_boards import as_lists, each, mixed_boards
from tests.support.deep import keep_quick
from tests.support.processes.commands import lakewright, lakewright_process, surroundings, verdicts

THREE = Row("three", 3, 3, ["...", "...", "..."], [(0, 0), (0, 1), (0, 2)], [(1, 0), (1, 1), (1, 2)])
CROWD = [(row, column) for row in range(3) for column in range(3)]
ONE = ("--size", "3", "--agents", "2", "--hole-ratio", "0.2", "--wait-ratio", "0.5", "--count", "3")

each_ending = pytest.mark.parametrize("form", keep_quick([".jsonl", ".parquet"], [".parquet"]))


def same_labels(row: Row, again: Row) -> bool:
    """Whether two rows are one board with one set of labels; their plans and why they are certain may differ."""
    same = msgspec.structs.replace(again, plan=row.plan, hole_ratio=row.hole_ratio, certificate=row.certificate)
    return same == row


@each_ending
def test_drawn_boards_are_solved_to_the_same_labels_and_verified(tmp_path, capsys, form):
    drawn, _ = drawn_elsewhere(form)
    bare, again, judged = (tmp_path / name for name in (f"bare{form}", f"again{form}", "judged.jsonl"))
    write_rows(bare, [unsolved(row) for row in read_all(drawn)])
    assert lakewright(capsys, "solve", bare, "--out", again) == (0, "", [])
    assert read_all(drawn) == small_rows()
    for row, solved in zip(read_all(drawn), read_all(again), strict=True):
        assert same_labels(row, solved), shown(row) + shown(solved)
    assert lakewright(capsys, "verify", again, "--out", judged) == (0, "", [])
    for row, verdict in zip(read_all(drawn), verdicts(judged), strict=True):
        assert (verdict.id, verdict.valid, verdict.failure) == (row.id, True, "none"), shown(row)
        assert (verdict.sum_of_costs, verdict.optimal_sum_of_costs) == (row.sum_of_costs, True), shown(row)
        assert verdict.optimal_makespan == (verdict.makespan == row.makespan), shown(row)


def test_boards_of_mixed_sizes_keep_their_order_and_their_labels(tmp_path, capsys):
    write_rows(tmp_path / "in.jsonl", [unsolved(row) for row in rows()])
    code, out, _ = lakewright(capsys, "solve", tmp_path / "in.jsonl", "--out", tmp_path / "out.parquet", "--json")
    assert (code, msgspec.json.decode(out)["boards"]) == (0, len(rows()))
    for row, again in zip(rows(), read_all(tmp_path / "out.parquet"), strict=True):
        assert same_labels(row, again), shown(row) + shown(again)


@pytest.mark.deep
def test_rows_of_one_to_five_agents_and_mixed_sizes_have_the_labels_of_each_row_alone(tmp_path, capsys):
    kinds = [(1, 3), (2, 3), (2, 5), (3, 4), (4, 4), (5, 4)]  # agents, size
    drawn = [(agents, size, each(mixed_boards(agents, 8, size, agents))) for agents, size in kinds]
    given = [
        Row(f"{agents}ag_{size}x{size}_{place}", size, agents, *as_lists(boards[place]))
        for place in range(8)
        for agents, size, boards in drawn  # no two neighbours of one kind
    ]
    write_rows(tmp_path / "in.jsonl", given)
    assert lakewright(capsys, "solve", tmp_path / "in.jsonl", "--out", tmp_path / "out.jsonl") == (0, "", [])
    solved = read_all(tmp_path / "out.jsonl")
    assert [row.id for row in solved] == [row.id for row in given]
    assert {row.status for row in solved} == {"solvable", "unsolvable"}
    for row, again in zip(given, solved, strict=True):
        (alone,) = solve_rows([row])
        assert again == alone, shown(alone) + shown(again)


def test_an_unsolvable_board_has_null_labels_and_no_plan(tmp_path, capsys):
    write_rows(tmp_path / "in.jsonl", [BLOCKED])
    assert lakewright(capsys, "solve", tmp_path / "in.jsonl", "--out", tmp_path / "out.jsonl")[0] == 0
    reported = msgspec.json.decode((tmp_path / "out.jsonl").read_bytes())
    assert reported["status"] == "unsolvable"
    assert [reported[name] for name in ("makespan", "sum_of_costs", "wait_required", "plan")] == [None] * 4


def test_bad_rows_are_reported_and_left_out_and_the_rest_is_done(tmp_path, capsys):
    good, bad = unsolved(small_rows()[0]), msgspec.to_builtins(BLOCKED)
    crowd = {**bad, "agents": 9, "size": 6, "grid": ["......"] * 6, **dict.fromkeys(("starts", "goals"), CROWD)}
    lines = [good, {**bad, "starts": [[0, 1], [0, 0]]}, crowd, {**bad, "plan": ["UX", "D"]}, BLOCKED]
    (tmp_path / "in.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(lines))
    code, out, reported = lakewright(capsys, "solve", tmp_path / "in.jsonl", "--out", tmp_path / "out.jsonl", "--json")
    assert code == 1, "some rows are left out, the rest is done"
    assert reported == [
        f"lakewright: {tmp_path}/in.jsonl:2: starts[0] is [0, 1], a hole; choose a frozen cell",
        f"lakewright: {tmp_path}/in.jsonl:3: agents is 9: at most 8 agents are supported; leave these boards out",
        f"lakewright: {tmp_path}/in.jsonl:4: plan[0] has the move 'X'; use U D L R W only",
    ]
    assert [row.id for row in read_all(tmp_path / "out.jsonl")] == [good.id, "blocked"]
    assert msgspec.json.decode(out) == {"boards": 2, "undecided": 0, "bad_rows": 3, "out": f"{tmp_path}/out.jsonl"}


def test_given_plans_are_judged_instead_of_those_in_the_rows(tmp_path, capsys):
    row = small_rows()[0]
    write_rows(tmp_path / "in.jsonl", [row, msgspec.structs.replace(row, id="b"), THREE])
    plans = [(row.id, ["W", "W"]), ("b", ["UUUU", "W"]), ("three", ["D", "D", "D"]), ("else", ["Q"])]
    lines = [{"id": name, "plan": plan} for name, plan in plans]
    (tmp_path / "plans.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(lines))
    given = ("--plans", tmp_path / "plans.jsonl", "--out", tmp_path / "out.jsonl")
    code, said, reported = lakewright(capsys, "verify", tmp_path / "in.jsonl", *given)
    assert (code, said, len(reported)) == (0, "", 1)
    assert "plans.jsonl:4: no board 'else' in" in reported[0]
    found = verdicts(tmp_path / "out.jsonl")
    assert (found[0].failure, found[0].step, found[0].optimal_makespan) == ("goal_not_reached", 1, False)
    assert found[1].failure in ("illegal_move", "hole"), shown(row)
    assert (found[2].valid, found[2].makespan, found[2].optimal_makespan) == (True, 1, None)
    (tmp_path / "plans.jsonl").write_text('{"id": "b", "plan": ["UX", "W"]}\n')
    code, _, reported = lakewright(capsys, "verify", tmp_path / "in.jsonl", *given)
    assert code == 1
    assert len(reported) == 4
    assert f"in.jsonl:1: no plan for {row.id!r}; add one to the row, or a row of its id to --plans" in reported[0]
    assert "plans.jsonl:1: plan[0] has the move 'X'; use U D L R W only (board 'b')" in reported[1]


@each_ending
def test_a_command_is_quiet_in_a_pipe_and_its_json_is_read_by_programs(form):
    out, ended = drawn_elsewhere(form)
    assert ended.stderr == ""
    reported = msgspec.json.decode(ended.stdout)
    assert (reported["boards"], reported["out"]) == (SMALL_COUNT, str(out))
    assert not [file for file in out.parent.iterdir() if file.name.endswith(".part")]


def test_the_program_ends_with_two_on_bad_input_and_says_what_to_do_in_one_line():
    ended = lakewright_process("solve", "none.jsonl", "--out", "never.jsonl")
    said = "lakewright: none.jsonl: cannot be read (No such file or directory); check the path\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", said)


def test_the_reader_of_a_pipe_may_leave():
    program = [sys.executable, "-m", "lakewright.experiments.cli", "generate", "--help"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=surroundings()) as process:
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


def test_an_interruption_is_reported_in_one_line(capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("lakewright.experiments.bench.lake.measure_rates", interrupted)
    line = "lakewright: interrupted; finished work is saved, and the same command resumes"
    assert lakewright(capsys, "bench") == (130, "", [line])


def test_options_and_a_config_draw_the_same_boards(tmp_path, capsys):
    (tmp_path / "env.toml").write_text("[sizes]\n3 = { data_ratio = 1.0, hole_ratio = 0.2, wait_ratio = 0.5 }\n")
    for name, given in (("a", ONE), ("b", ("--config", tmp_path / "env.toml", "--count", "3"))):
        assert lakewright(capsys, "generate", *given, "--out", tmp_path / f"{name}.jsonl") == (0, "", [])
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
