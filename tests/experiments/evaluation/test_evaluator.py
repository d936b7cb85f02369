"""Evaluation: every answer is judged once, nothing that was answered is lost, and rates say what they are of."""

import json
import math
import signal
import subprocess
import sys
import threading

import msgspec
import pytest

from core_jax.errors import InputError
from core_jax.rows import SCHEMA, Row, columns_of, write_rows
from core_jax.types import MOVES
from experiments.evaluation import EvaluationSettings, as_table, evaluate, labels
from experiments.evaluation.answerers import AnswerRow
from experiments.evaluation.evaluation_set import read_set, spread
from experiments.evaluation.judging import JudgedRow, judged_rows
from experiments.evaluation.scores import Summary
from experiments.resumable import Journal
from policy.checkpoints import save_checkpoint
from policy.codecs import PublishedRow, Refusal, encode_prompt
from policy.codecs.text_board import read_lake
from policy.codecs.text_prompt import MOVE_WORDS
from tests.support.boards.generated_rows import small_rows, unsolved
from tests.support.boards.sample_boards import drawing
from tests.support.models.small_language_model import language_checkpoint
from tests.support.models.tiny_policy import tiny_model, tokenizer
from tests.support.processes.commands import assert_refused, lakewright, surroundings
from tests.support.processes.watching import PATIENCE
from tests.support.servers.chat_server import closed, completion, failing, send, serving

KEY = "sk-very-secret-0123456789"
WORDS = {MOVES[move]: word for move, word in MOVE_WORDS.items()}
ROWS = small_rows()[:12]


def in_words(plan: list[str]) -> str:
    return "\n".join(f"agent {agent}: {' '.join(map(WORDS.get, moves))}" for agent, moves in enumerate(plan))


def board_of(row: Row):
    return drawing(row.grid, row.starts, row.goals)


class Teller:
    """Answers with the certified plan, but for the rows of some numbers; ends like a power cut after `most`."""

    name, identity, in_words, spent = "teller", {"model": "teller"}, True, 0.0

    def __init__(self, wrong: dict[int, str] | None = None, most: float = math.inf) -> None:
        self.wrong, self.most = wrong or {}, most
        self.asked: list[tuple[str, int]] = []

    def answers(self, asked):
        numbers = {row.id: number for number, row in enumerate(ROWS)}
        for one in asked:
            if len(self.asked) == self.most:
                raise KeyboardInterrupt
            self.asked.append((one.row.id, one.sample))
            text = self.wrong.get(numbers[one.row.id], in_words(one.row.plan))
            yield [AnswerRow(one.row.id, one.sample, text, None, 10, 5, "stop")]


@pytest.fixture
def benchmark(tmp_path):
    write_rows(tmp_path / "rows.jsonl", ROWS)
    return tmp_path / "rows.jsonl"


def run(benchmark, out, teller: Teller, **settings) -> Summary:
    return evaluate(benchmark, out, lambda out: teller, EvaluationSettings(**settings))


def test_every_board_is_judged_once_and_counted_by_what_became_of_it(benchmark, tmp_path):
    wrong = {0: "agent 0: UP", 1: "I give up", 2: "agent 0: W\nagent 1: W", 3: "agent 0: LEFT LEFT LEFT\nagent 1: W"}
    summary = run(benchmark, tmp_path / "out", Teller(wrong))
    found = summary.pooled.outcomes
    assert (found.boards, found.valid, found.optimal_sum_of_costs) == (12, 8, 8)
    assert sum(found.failures.values()) == 4
    assert (found.failures["parse_error"], found.failures["goal_not_reached"]) == (2, 1)
    assert found.wait_boards == sum(row.wait_required for row in ROWS)
    assert summary.refusals == {"wrong_agents": 1, "no_plan": 1}
    assert (summary.tokens.prompt, summary.tokens.completion, summary.complete) == (120, 60, True)
    assert [(cell.agents, cell.size) for cell in summary.cells] == [(2, 3)]
    assert summary.teams[0].means["valid"] == pytest.approx(8 / 12)
    judged = msgspec.json.Decoder(JudgedRow).decode_lines((tmp_path / "out" / "verdicts.jsonl").read_bytes())
    assert [(row.verdict.id, row.refusal) for row in judged[:3]] == [
        (ROWS[0].id, "wrong_agents"),
        (ROWS[1].id, "no_plan"),
        (ROWS[2].id, None),
    ]
    assert "66.7" in as_table(summary)


@pytest.mark.parametrize("most", [0, 1, 7, 23])
def test_what_was_answered_before_a_kill_is_not_asked_again(benchmark, tmp_path, most):
    whole = run(benchmark, tmp_path / "whole", Teller(), samples=1)
    cut = Teller(most=most)
    with pytest.raises(KeyboardInterrupt):
        run(benchmark, tmp_path / "out", cut, samples=1)
    assert len(cut.asked) == most
    with open(tmp_path / "out" / "answers.jsonl", "ab") as file:
        file.write(b'{"id":"half a li')
    rest = Teller()
    assert run(benchmark, tmp_path / "out", rest, samples=1) == whole
    assert sorted(cut.asked + rest.asked) == sorted((row.id, sample) for row in ROWS for sample in (0, 1))
    for name in ("answers.jsonl", "verdicts.jsonl", "summary.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_more_samples_and_boards_may_be_asked_for_later(benchmark, tmp_path):
    first, second = Teller(), Teller()
    assert run(benchmark, tmp_path / "out", first, per_cell=5).pooled.outcomes.boards == 5
    summary = run(benchmark, tmp_path / "out", second, samples=2)
    assert len(first.asked) + len(second.asked) == 36
    assert {name: rates[0].rate for name, rates in summary.pooled.pass_at.items()}["valid"] == 1
    assert [rate.k for rate in summary.pooled.pass_at["valid"]] == [1, 2]


def test_samples_without_a_greedy_answer_are_rated_by_the_first(benchmark, tmp_path):
    teller = Teller()
    summary = run(benchmark, tmp_path / "out", teller, greedy=False, samples=2)
    assert {sample for _, sample in teller.asked} == {1, 2}
    assert summary.pooled.outcomes.valid == 12
    with pytest.raises(ValueError, match="neither a greedy answer nor samples"):
        EvaluationSettings(greedy=False)


def test_a_folder_of_another_evaluation_is_refused(benchmark, tmp_path):
    run(benchmark, tmp_path / "out", Teller())
    with pytest.raises(InputError, match=r"job.json: .* temperature is 1.0 there and 0.5 now; .*choose another folder"):
        run(benchmark, tmp_path / "out", Teller(), temperature=0.5)
    other = Teller()
    other.identity = {"solver": "greedy"}
    with pytest.raises(InputError, match=r"job.json: .* who.model is 'teller' there and None now"):
        run(benchmark, tmp_path / "out", other)
    write_rows(benchmark, ROWS[:5])
    with pytest.raises(InputError, match=r"job.json: holds another evaluation: benchmark is"):
        run(benchmark, tmp_path / "out", Teller())


class Down(Teller):
    """A server that answers nothing."""

    def answers(self, asked):
        raise InputError("endpoint: cannot be reached")


@pytest.fixture
def two_sets(tmp_path):
    """Two benchmarks without labels whose ids coincide and whose boards do not."""
    names = [row.id for row in ROWS]
    boards = [msgspec.structs.replace(unsolved(row), id=name) for row, name in zip(ROWS[::-1], names, strict=True)]
    write_rows(tmp_path / "a.jsonl", list(map(unsolved, ROWS)))
    write_rows(tmp_path / "b.jsonl", boards)
    return tmp_path / "a.jsonl", tmp_path / "b.jsonl"


@pytest.mark.parametrize("cut", ["labelled", "labelling"])
def test_a_benchmark_is_never_scored_on_the_boards_of_another(two_sets, tmp_path, monkeypatch, cut):
    one, other = two_sets
    if cut == "labelling":
        monkeypatch.setattr(labels, "solve_columns", lambda rows, on_progress: 1 / 0)
    with pytest.raises((InputError, ZeroDivisionError)):
        run(one, tmp_path / "out", Down())
    monkeypatch.undo()
    with pytest.raises(InputError, match=r"another board than in .*choose another --out|holds another set of labels"):
        run(other, tmp_path / "out", Teller())
    assert run(one, tmp_path / "out", Teller()).pooled.outcomes.boards == len(ROWS), "the first set continues"


def test_labels_from_before_they_were_claimed_are_read_for_their_own_boards_only(two_sets, tmp_path):
    one, other = two_sets
    with pytest.raises(InputError, match="cannot be reached"):
        run(one, tmp_path / "out", Down())
    (tmp_path / "out" / "labels.json").unlink()
    with pytest.raises(InputError, match=rf"boards.*jsonl: '{ROWS[0].id}' is another board than in .*b.jsonl; choose"):
        run(other, tmp_path / "out", Teller())
    assert run(one, tmp_path / "out", Teller()).pooled.outcomes.boards == len(ROWS)


def test_labels_of_the_same_boards_belong_to_one_benchmark_still(two_sets, tmp_path):
    one, _ = two_sets
    with pytest.raises(InputError, match="cannot be reached"):
        run(one, tmp_path / "out", Down())
    write_rows(tmp_path / "fewer.jsonl", [unsolved(row) for row in ROWS[:4]])
    with pytest.raises(InputError, match=r"labels.json: holds another set of labels: benchmark is '.*choose another"):
        run(tmp_path / "fewer.jsonl", tmp_path / "out", Teller())


def test_a_published_copy_is_labelled_and_asked_in_our_words_or_its_own(tmp_path, monkeypatch):
    labelled = {row.id: row for row in ROWS}
    monkeypatch.setattr(
        labels,
        "solve_columns",
        lambda bare, on_progress: columns_of([labelled[name] for name in bare["id"].to_pylist()], SCHEMA),
    )
    published = [PublishedRow(row.id, row.agents, encode_prompt(board_of(row)) + "Go!") for row in ROWS]
    path = tmp_path / "published.jsonl"
    path.write_bytes(msgspec.json.Encoder().encode_lines(published))
    prompts = []

    class Reader(Teller):
        def answers(self, asked):
            prompts.extend(one.prompt for one in asked)
            return super().answers(asked)

    for place, prompt in enumerate(("own", "row")):
        summary = run(path, tmp_path / prompt, Reader(), prompt=prompt)
        assert (summary.pooled.outcomes.optimal_sum_of_costs, summary.unlabelled) == (12, 0)
        assert summary.pooled.outcomes.wait_boards == sum(row.wait_required for row in ROWS)
        assert all(asked.endswith("Go!") == bool(place) for asked in prompts[12 * place :])


def test_a_row_that_contradicts_its_text_is_told_by_its_line(tmp_path):
    fields = [msgspec.to_builtins(unsolved(row)) for row in ROWS[:2]]
    fields[1]["text"] = encode_prompt(board_of(ROWS[0]))
    (tmp_path / "rows.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(fields))
    with pytest.raises(InputError, match=r"rows.jsonl:2: \w+ is .* but text shows .*; correct one of them"):
        read_set(tmp_path / "rows.jsonl")


def test_two_rows_of_one_id_are_refused(tmp_path):
    write_rows(tmp_path / "rows.jsonl", [*ROWS, ROWS[3]])
    with pytest.raises(InputError, match=f"13 rows have 12 ids: '{ROWS[3].id}' comes twice"):
        read_set(tmp_path / "rows.jsonl")


def test_a_jump_of_the_tokens_codec_is_an_illegal_move():
    (judged,) = judged_rows(ROWS[:1], [AnswerRow(ROWS[0].id, 0, plan=["?", "W"])])
    assert (judged.verdict.failure, judged.verdict.agent, judged.verdict.step) == ("illegal_move", 0, 0)
    (unread,) = judged_rows(ROWS[:1], [AnswerRow(ROWS[0].id, 0)])
    assert (unread.verdict.failure, unread.refusal) == ("parse_error", Refusal.NO_PLAN)


def test_boards_are_spread_evenly_over_a_cell():
    assert spread(ROWS, 12) == spread(ROWS, 99) == ROWS
    assert [ROWS.index(row) for row in spread(ROWS, 3)] == [2, 6, 10]


def test_a_journal_names_a_line_that_it_cannot_read(tmp_path):
    (tmp_path / "answers.jsonl").write_bytes(b'{"id":"a","sample":0}\n{"id":1}\n')
    told = r"answers.jsonl:2: .*; remove the line; it is then made again"
    with Journal(tmp_path / "answers.jsonl", AnswerRow) as journal, pytest.raises(InputError, match=told):
        list(journal)


def answering(request, body):
    """Answers each second board with its certified plan and the others with none, after a moment's thought."""
    shows = read_lake("asked", body["messages"][0]["content"])
    place, row = next((n, row) for n, row in enumerate(ROWS) if (row.grid, row.starts, row.goals) == shows_board(shows))
    send(request, completion(f"<think>agent 0: UP</think>{in_words(row.plan) if place % 2 else 'No.'}"))


def shows_board(row: Row) -> tuple:
    return row.grid, row.starts, row.goals


def asking(benchmark, tmp_path, server, *more: object) -> tuple:
    who = ("--endpoint", server.url, "--model-name", "m", "--retries", 1, "--timeout", 60, "--max-tokens", 100)
    return ("benchmark", "eval", benchmark, "--out", tmp_path / "out", *who, *more)


def test_an_endpoint_is_evaluated_and_its_key_is_in_no_file(benchmark, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("LAKEWRIGHT_API_KEY", KEY)
    with serving(answering, [failing(429)]) as server:
        code, out, told = lakewright(capsys, *asking(benchmark, tmp_path, server, "--json", "--samples", 2))
    assert (code, told, server.keys) == (0, [], {f"Bearer {KEY}"})
    summary = msgspec.json.decode(out, type=Summary)
    assert (summary.pooled.outcomes.valid, summary.refusals, summary.who) == (6, {"no_plan": 6}, "m")
    assert {rate.k: rate.rate for rate in summary.pooled.pass_at["valid"]} == {1: 0.5, 2: 0.5}
    assert {body["temperature"] for body in server.seen} == {0.0, 1.0}
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert names == {
        "job.json",
        "answers.jsonl",
        "verdicts.jsonl",
        "summary.json",
        "plot.png",
        "plot.svg",
        "spending.jsonl",
    }
    for file in (tmp_path / "out").iterdir():
        assert KEY.encode() not in file.read_bytes(), f"{file.name} holds the key"


def test_a_killed_process_has_kept_whole_answers_and_asks_for_the_others_only(benchmark, tmp_path, capsys):
    def hanging(request, body):
        hung.set()
        killed.wait(PATIENCE)
        request.close_connection = True

    hung, killed = threading.Event(), threading.Event()
    with serving(hanging, [answering] * 5) as server:
        arguments = [*map(str, asking(benchmark, tmp_path, server, "--concurrency", 1, "--timeout", PATIENCE))]
        with subprocess.Popen([sys.executable, "-m", "experiments.cli", *arguments], env=surroundings()) as process:
            assert hung.wait(PATIENCE), "the sixth board is not asked for"
            process.kill()
        killed.set()
        kept = (tmp_path / "out" / "answers.jsonl").read_bytes()
        assert (process.returncode, kept.count(b"\n"), kept[-1:]) == (-signal.SIGKILL, 5, b"\n")
        server.usual = answering
        before = len(server.seen)
        assert lakewright(capsys, *arguments)[0] == 0
    assert len(server.seen) - before == len(ROWS) - 5
    assert (tmp_path / "out" / "answers.jsonl").read_bytes().startswith(kept)


def test_the_cost_cap_ends_with_one_and_a_higher_one_goes_on(benchmark, tmp_path, capsys):
    prices = ("--price-in", 10, "--price-out", 20)  # 0.002 dollars an answer
    with serving(answering) as server:
        code, out, told = lakewright(capsys, *asking(benchmark, tmp_path, server, *prices, "--max-cost", 0.03))
        assert (code, len(told)) == (1, 1)
        assert "another answer may exceed --max-cost; raise it and run the same command again" in told[0]
        before = len(server.seen)
        assert 0 < before < 12
        assert f"{12 - before} boards have no answer yet" in out
        assert lakewright(capsys, *asking(benchmark, tmp_path, server, *prices, "--max-cost", 1))[0] == 0
    assert len(server.seen) == 12


def test_tries_that_failed_count_for_the_cap_of_later_commands_too(benchmark, tmp_path, capsys):
    prices = ("--price-in", 10, "--price-out", 20, "--retries", 0, "--concurrency", 1, "--json")
    with serving(answering, [closed]) as server:
        arguments = asking(benchmark, tmp_path, server, *prices)
        assert lakewright(capsys, *arguments)[0] == 2
        (charge,) = (json.loads(line) for line in (tmp_path / "out" / "spending.jsonl").read_text().splitlines())
        failed = (charge["tokens_in"] * 10 + charge["tokens_out"] * 20) / 1e6
        code, out, _ = lakewright(capsys, *arguments, "--max-cost", failed + 0.02)
        assert code == 1
        dollars = json.loads(out)["tokens"]["dollars"]
        assert failed < dollars <= failed + 0.02
        code, out, _ = lakewright(capsys, *arguments)
        assert (code, json.loads(out)["tokens"]["dollars"]) == (0, pytest.approx(failed + 12 * 0.002))


def test_an_endpoint_that_fails_ends_with_two_and_keeps_what_it_said(benchmark, tmp_path, capsys):
    with serving(failing(500), [answering] * 5) as server:
        arguments = asking(benchmark, tmp_path, server, "--concurrency", 1)
        assert_refused(
            capsys, arguments, f"endpoint {server.url}, model 'm': answers 500 (no)", "run the same command again"
        )
    with Journal(tmp_path / "out" / "answers.jsonl", AnswerRow) as journal:
        assert len(list(journal)) == 5


BAD = {
    "no such benchmark": (("--solver", "greedy"), "missing", ["missing: does not exist", "check the path"]),
    "no benchmark in a folder": (("--solver", "greedy"), "", ["holds no benchmark.jsonl", "benchmark build"]),
    "an endpoint without a model": (("--endpoint", "http://x/v1"), "rows.jsonl", ["--model-name", "give both"]),
    "an address that is none": (
        ("--endpoint", "localhost", "--model-name", "m"),
        "rows.jsonl",
        ["url is 'localhost'", "write it as http://host:port/v1"],
    ),
    "samples of one mind": (("--solver", "greedy", "--samples", 3), "rows.jsonl", ["--samples is 3", "never varies"]),
    "no answer wanted": (("--solver", "random", "--no-greedy"), "rows.jsonl", ["neither a greedy", "--samples"]),
    "a device that is not there": (
        ("--model", "MODEL", "--device", "cuda"),
        "rows.jsonl",
        ["device is cuda", "no CUDA device", "choose cpu or auto"],
    ),
    "a model that is not there": (
        ("--model", "some/where/else"),
        "rows.jsonl",
        ["some/where/else: no config.json", "give a checkpoint folder"],
    ),
    "a temperature below zero": (
        ("--solver", "random", "--temperature", -1),
        "rows.jsonl",
        ["temperature", "-1.0 does not fit"],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_told(benchmark, tmp_path, capsys, name):
    who, place, parts = BAD[name]
    who = [str(language_checkpoint()) if word == "MODEL" else word for word in who]
    assert_refused(capsys, ("benchmark", "eval", tmp_path / place, "--out", tmp_path / "out", *who), *parts)


def test_a_start_on_a_goal_is_planned_for_and_told_to_those_who_are_asked_in_words(tmp_path, capsys):
    swap = Row("swap", 2, 2, ["..", ".."], [(0, 0), (0, 1)], [(0, 1), (0, 0)])
    write_rows(tmp_path / "rows.jsonl", [swap])
    benchmark = ("benchmark", "eval", tmp_path / "rows.jsonl", "--out", tmp_path / "out")
    assert lakewright(capsys, *benchmark, "--solver", "optimal", "--json")[0] == 0
    with serving(answering) as server:
        arguments = asking(tmp_path / "rows.jsonl", tmp_path / "asked", server)
        assert_refused(capsys, arguments, "row 'swap' cannot be described in a prompt", "is both s and G")
        assert not server.seen
    save_checkpoint(tmp_path / "model", tiny_model(), tokenizer())
    arguments = (
        "benchmark",
        "eval",
        tmp_path / "rows.jsonl",
        "--out",
        tmp_path / "told",
        "--model",
        tmp_path / "model",
    )
    assert_refused(capsys, arguments, "a board is 2x2, the tokens codec has words for 3 to 10; leave it out")


@pytest.mark.parametrize("codec", ["tokens", "text"])
def test_a_checkpoint_is_evaluated_in_its_codec_and_a_kill_loses_a_batch_at_most(benchmark, tmp_path, capsys, codec):
    if codec == "text":
        place = language_checkpoint()
    else:
        save_checkpoint(place := tmp_path / "model", tiny_model(), tokenizer())
    arguments = ("benchmark", "eval", benchmark, "--model", place, "--batch", 5, "--max-tokens", 8, "--samples", 1)
    code, out, told = lakewright(capsys, *arguments, "--out", tmp_path / "out", "--json")
    assert (code, told) == (0, [])
    summary = msgspec.json.decode(out, type=Summary)
    assert (summary.pooled.outcomes.boards, summary.tokens.answers, summary.complete) == (12, 24, True)
    assert summary.tokens.completion > 0
    answers = (tmp_path / "out" / "answers.jsonl").read_bytes()
    assert (b'"text"' in answers) == (codec == "text")
    (tmp_path / "out" / "answers.jsonl").write_bytes(b"".join(answers.splitlines(keepends=True)[:10]))
    assert lakewright(capsys, *arguments, "--out", tmp_path / "out", "--json")[1] == out
    assert (tmp_path / "out" / "answers.jsonl").read_bytes() == answers


def test_solvers_are_evaluated_without_the_training_libraries(benchmark, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "trl", None)
    code, out, _ = lakewright(
        capsys, "benchmark", "eval", benchmark, "--solver", "optimal", "--out", tmp_path / "out", "--json"
    )
    assert code == 0
    assert msgspec.json.decode(out, type=Summary).pooled.outcomes.optimal_sum_of_costs == 12
