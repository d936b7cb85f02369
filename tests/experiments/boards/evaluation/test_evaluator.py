"""Evaluation: every answer is judged once, nothing that was answered is lost, and rates name what they count."""

import msgspec
import pytest

from lakewright.core_jax.rows import SCHEMA, columns_of, write_rows
from lakewright.experiments.boards.evaluation import evaluator
from lakewright.experiments.boards.evaluation.answerers import AnswerRow
from lakewright.experiments.boards.evaluation.evaluation_set import read_set, spread_rows
from lakewright.experiments.boards.evaluation.evaluator import EvaluationSettings, JudgedRow, judge_rows
from lakewright.experiments.boards.evaluation.score_table import tabulate_summary
from lakewright.experiments.jobs.resumable.journal import LineJournal
from lakewright.policy.codecs import PublishedRow, Refusal, encode_prompt
from tests.support.boards.generated_rows import unsolved
from tests.support.machines.kills import cut_off
from tests.support.refusals import refused
from tests.support.samples.evaluations import ROWS, CertifiedAnswers, board_of, run_evaluation, write_plan


def test_every_board_is_judged_once_and_counted_by_its_outcome(benchmark, tmp_path):
    wrong = {0: "agent 0: UP", 1: "I give up", 2: "agent 0: W\nagent 1: W", 3: "agent 0: LEFT LEFT LEFT\nagent 1: W"}
    summary = run_evaluation(benchmark, tmp_path / "out", CertifiedAnswers(wrong))
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
    assert "66.7" in tabulate_summary(summary)
    assert sum(part.score.outcomes.boards for part in summary.hole_ratios) == 12
    assert sum(part.score.outcomes.valid for part in summary.hole_ratios) == 8


@pytest.mark.parametrize("most", [0, 1, 7, 23])
def test_what_was_answered_before_a_kill_is_not_asked_again(benchmark, tmp_path, most):
    whole = run_evaluation(benchmark, tmp_path / "whole", CertifiedAnswers(), samples=1)
    cut = CertifiedAnswers(most=most)
    with pytest.raises(KeyboardInterrupt):
        run_evaluation(benchmark, tmp_path / "out", cut, samples=1)
    assert len(cut.asked) == most
    cut_off(tmp_path / "out" / "answers.jsonl", then=b'{"id":"half a li')
    rest = CertifiedAnswers()
    assert run_evaluation(benchmark, tmp_path / "out", rest, samples=1) == whole
    assert sorted(cut.asked + rest.asked) == sorted((row.id, sample) for row in ROWS for sample in (0, 1))
    for name in ("answers.jsonl", "verdicts.jsonl", "summary.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_answers_that_were_lost_are_not_asked_for_again(benchmark, tmp_path):
    """A server would be paid twice. After a kill it has to be; then the file is not listed."""
    run_evaluation(benchmark, tmp_path / "out", CertifiedAnswers())
    path = tmp_path / "out" / "answers.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    again = CertifiedAnswers()
    with refused("answers.jsonl", "changed"):
        run_evaluation(benchmark, tmp_path / "out", again)
    assert not again.asked


def test_more_samples_and_boards_may_be_asked_for_later(benchmark, tmp_path):
    first, second = CertifiedAnswers(), CertifiedAnswers()
    assert run_evaluation(benchmark, tmp_path / "out", first, per_cell=5).pooled.outcomes.boards == 5
    summary = run_evaluation(benchmark, tmp_path / "out", second, samples=2)
    assert len(first.asked) + len(second.asked) == 36
    assert {name: rates[0].rate for name, rates in summary.pooled.pass_at.items()}["valid"] == 1
    assert [rate.k for rate in summary.pooled.pass_at["valid"]] == [1, 2]


def test_samples_without_a_greedy_answer_are_rated_by_the_first(benchmark, tmp_path):
    certified = CertifiedAnswers()
    summary = run_evaluation(benchmark, tmp_path / "out", certified, greedy=False, samples=2)
    assert {sample for _, sample in certified.asked} == {1, 2}
    assert summary.pooled.outcomes.valid == 12
    with pytest.raises(ValueError, match="give --samples with --no-greedy"):
        EvaluationSettings(greedy=False)


def test_planning_with_the_simulator_as_judge_is_reported_apart(benchmark, tmp_path):
    class GreedyFails(CertifiedAnswers):
        """Fails greedily everywhere, never in a sample."""

        def answers(self, asked):
            for one in asked:
                fails = not one.sample
                yield [AnswerRow(one.row.id, one.sample, "I give up" if fails else write_plan(one.row.plan))]

    summary = run_evaluation(benchmark, tmp_path / "both", GreedyFails(), samples=2)
    assert (summary.pooled.outcomes.valid, summary.judged.pooled.outcomes.valid) == (0, 12)
    assert (summary.judged.answers, summary.judged.teams[0].means["optimal_sum_of_costs"]) == (3, 1)
    assert "simulator as judge, the best valid of 3 answers" in tabulate_summary(summary)


def test_a_folder_of_another_evaluation_is_refused(benchmark, tmp_path):
    run_evaluation(benchmark, tmp_path / "out", CertifiedAnswers())
    with refused("job.json:", "temperature", "1.0", "0.5"):
        run_evaluation(benchmark, tmp_path / "out", CertifiedAnswers(), temperature=0.5)
    other = CertifiedAnswers()
    other.identity = {"solver": "greedy"}
    with refused("job.json:", "who.model", "'certified'", "None"):
        run_evaluation(benchmark, tmp_path / "out", other)
    write_rows(benchmark, ROWS[:5])
    with refused("job.json", "benchmark is"):
        run_evaluation(benchmark, tmp_path / "out", CertifiedAnswers())


def test_a_published_copy_is_labelled_and_asked_in_our_words_or_its_own(tmp_path, monkeypatch):
    labelled = {row.id: row for row in ROWS}
    monkeypatch.setattr(
        evaluator,
        "solve_columns",
        lambda bare, on_progress: columns_of([labelled[name] for name in bare["id"].to_pylist()], SCHEMA),
    )
    published = [PublishedRow(row.id, row.agents, encode_prompt(board_of(row)) + "Go!") for row in ROWS]
    path = tmp_path / "published.jsonl"
    path.write_bytes(msgspec.json.Encoder().encode_lines(published))
    prompts = []

    class Reader(CertifiedAnswers):
        def answers(self, asked):
            prompts.extend(one.prompt for one in asked)
            return super().answers(asked)

    for place, prompt in enumerate(("own", "row")):
        summary = run_evaluation(path, tmp_path / prompt, Reader(), prompt=prompt)
        assert (summary.pooled.outcomes.optimal_sum_of_costs, summary.unlabelled) == (12, 0)
        assert summary.pooled.outcomes.wait_boards == sum(row.wait_required for row in ROWS)
        assert all(asked.endswith("Go!") == bool(place) for asked in prompts[12 * place :])


def test_a_row_that_contradicts_its_text_is_reported_by_its_line(tmp_path):
    fields = [msgspec.to_builtins(unsolved(row)) for row in ROWS[:2]]
    fields[1]["text"] = encode_prompt(board_of(ROWS[0]))
    (tmp_path / "rows.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(fields))
    with refused("rows.jsonl:2", "text shows"):
        read_set(tmp_path / "rows.jsonl")


def test_two_rows_of_one_id_are_refused(tmp_path):
    write_rows(tmp_path / "rows.jsonl", [*ROWS, ROWS[3]])
    with refused("13 rows", "12 ids", repr(ROWS[3].id)):
        read_set(tmp_path / "rows.jsonl")


def test_a_jump_of_the_tokens_codec_is_an_illegal_move():
    (judged,) = judge_rows(ROWS[:1], [AnswerRow(ROWS[0].id, 0, plan=["?", "W"])])
    assert (judged.verdict.failure, judged.verdict.agent, judged.verdict.step) == ("illegal_move", 0, 0)
    (unread,) = judge_rows(ROWS[:1], [AnswerRow(ROWS[0].id, 0)])
    assert (unread.verdict.failure, unread.refusal) == ("parse_error", Refusal.NO_PLAN)


def test_boards_are_spread_evenly_over_a_cell():
    assert spread_rows(ROWS, 12) == spread_rows(ROWS, 99) == ROWS
    assert [ROWS.index(row) for row in spread_rows(ROWS, 3)] == [2, 6, 10]


def test_a_journal_names_a_line_that_it_cannot_read(tmp_path):
    (tmp_path / "answers.jsonl").write_bytes(b'{"id":"a","sample":0}\n{"id":1}\n')
    with LineJournal(tmp_path / "answers.jsonl", AnswerRow) as journal, refused("answers.jsonl:2", "remove this line"):
        list(journal)
