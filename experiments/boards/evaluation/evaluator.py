"""Evaluation of an answerer on a fixed set of boards, saved answer by answer.

    OUT/job.json  OUT/answers.jsonl  OUT/verdicts.jsonl  OUT/summary.json

Answers are saved as they come and judged at the end, so that the same command resumes after a kill, and more boards or
samples may be added later. Rows without labels are solved first, part by part, so that a kill loses one part at most:

    OUT/labels.json  OUT/boards.without_labels.jsonl  OUT/boards.jsonl

labels.json claims them for one benchmark.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import pyarrow as pa

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import content_hash
from lakewright.core_jax.rows import (
    SCHEMA,
    Row,
    VerdictRow,
    board_of,
    fingerprint,
    read_all,
    solve_columns,
    unsolvable_here,
    write_rows,
)
from lakewright.core_jax.support import (
    Count,
    Natural,
    Weight,
    check_digest,
    listed,
    locked,
    unlisted,
    write_atomically,
    write_json,
)
from lakewright.experiments.boards.evaluation.answerers import Answerer, AnswerRow, WantedAnswer
from lakewright.experiments.boards.evaluation.evaluation_set import EvaluationSet, read_set, spread_rows
from lakewright.experiments.boards.evaluation.scores import (
    Summary,
    Tokens,
    hole_scores,
    score_answers,
    score_best_samples,
)
from lakewright.experiments.jobs.resumable.claims import Claim
from lakewright.experiments.jobs.resumable.journal import LineJournal
from lakewright.experiments.jobs.resumable.part_work import work_in_parts
from lakewright.experiments.jobs.resumable.parts import job_of, parts_of
from lakewright.policy.codecs import PROMPT, Refusal, Refused, encode_compact_prompt, encode_prompt
from lakewright.policy.inference import BudgetSpentError
from lakewright.policy.judging import judge_plans, read_plan

ANSWERS, VERDICTS = "answers.jsonl", "verdicts.jsonl"


class EvaluationSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The questions asked. per_cell: the most boards for each number of agents and size. prompt: the codec's `own`, its
    `compact` form, or the one of the `row`.
    """

    greedy: bool = True
    samples: Natural = 0
    temperature: Weight = 1.0
    per_cell: Count | None = None
    prompt: Literal["own", "compact", "row"] = "own"

    def __post_init__(self) -> None:
        if not self.greedy and not self.samples:
            raise ValueError("nothing to evaluate; give --samples with --no-greedy")

    @property
    def first(self) -> int:
        """The sample that rates are of."""
        return 0 if self.greedy else 1


class EvaluationJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """job.json: what all answers in one folder share."""

    format: int
    benchmark: str
    who: dict[str, Any]
    temperature: float
    prompt: str


CLAIM = Claim("evaluation", "job.json", EvaluationJob, 1, "lakewright benchmark eval", exclusive=False)


def evaluate_on_benchmark(
    benchmark: Path,
    out: Path,
    answerer: Callable[[Path], Answerer],
    settings: EvaluationSettings,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Summary:
    """Has every board of `benchmark` answered, except those answered in `out` already, and judges all answers.

    Args:
        benchmark: a folder of `benchmark build`, or a file of rows.
        out: the folder of the evaluation.
        answerer: makes the answerer for the folder `out`.
        settings: say how boards are answered, and how often.
        on_progress: gets the kind of progress, how much was added, and the total.

    Raises InputError on bad input, on an `out` of another evaluation, and if an endpoint fails; the answers so far
    are saved.
    """
    if benchmark.resolve() == (out / VERDICTS).resolve():
        raise InputError(f"{benchmark}: would be overwritten by the verdicts; choose another --out")
    found = read_set(benchmark)
    with locked(out), contextlib.ExitStack() as stack:
        who = answerer(out)
        job = _describe_job(found, who, settings)
        check_digest(out / ANSWERS)  # answers that were lost would be asked for again, and paid for
        journal = stack.enter_context(LineJournal(out / ANSWERS, AnswerRow, content_hash(job)))
        CLAIM.take_folder(out, job, replace=journal.empty)
        kept = list(journal)
        stack.enter_context(unlisted(out / ANSWERS))
        found = label_rows(found, out, lambda rows: on_progress("labels", rows, len(found.rows)))
        rows = spread_rows(found.rows, settings.per_cell) if settings.per_cell else found.rows
        there = {(answer.id, answer.sample) for answer in kept}
        prompts = {row.id: _write_prompt(row, found, settings) if who.reads_text else "" for row in rows}
        asked = [one for one in _list_questions(rows, prompts, settings) if (one.row.id, one.sample) not in there]
        total = len(rows) * (settings.samples + settings.greedy)
        on_progress("answers", total - len(asked), total)
        try:
            for some in who.answers(asked):
                journal.add(*some)
                kept += some
                on_progress("answers", len(some), total)
        except BudgetSpentError:
            pass  # the answers so far are judged, and the summary says that it is not complete
        return _summarise(out, found, rows, who, kept, settings)


def _list_questions(
    rows: Sequence[Row], prompts: Mapping[str, str], settings: EvaluationSettings
) -> Iterator[WantedAnswer]:
    """Every answer that is wanted, the greedy ones first."""
    for sample in range(settings.first, settings.samples + 1):
        for row in rows:
            yield WantedAnswer(row, prompts[row.id], sample, settings.temperature if sample else 0.0)


def _write_prompt(row: Row, found: EvaluationSet, settings: EvaluationSettings) -> str:
    if settings.prompt != "row":
        written = encode_compact_prompt if settings.prompt == "compact" else encode_prompt
        try:
            return written(board_of(row))
        except ValueError as error:
            raise InputError(
                f"{found.path}: row {row.id!r:.60} cannot be described in a prompt: {error}; remove it"
            ) from None
    if row.id not in found.texts:
        raise InputError(f"{found.path}: row {row.id!r:.60} has no text; leave out --prompt row")
    return found.texts[row.id]


def _describe_job(found: EvaluationSet, who: Answerer, settings: EvaluationSettings) -> EvaluationJob:
    prompt = content_hash(PROMPT) if settings.prompt == "own" else settings.prompt
    return EvaluationJob(CLAIM.format, found.sha256, who.identity, settings.temperature, prompt)


def _summarise(
    out: Path,
    found: EvaluationSet,
    rows: list[Row],
    who: Answerer,
    answers: list[AnswerRow],
    settings: EvaluationSettings,
) -> Summary:
    """Judges the answers that were asked for, and writes verdicts and summary."""
    by_id = {row.id: row for row in rows}
    wanted = range(settings.first, settings.samples + 1)
    answers = [answer for answer in answers if answer.id in by_id and answer.sample in wanted]
    judged = judge_rows([by_id[answer.id] for answer in answers], answers)
    with listed(out / VERDICTS):
        write_atomically(out / VERDICTS, msgspec.json.Encoder().encode_lines(judged))
    verdicts = {(found.verdict.id, found.sample): found.verdict for found in judged}
    cells, teams, pooled = score_answers(rows, verdicts, settings.first, settings.samples)
    summary = Summary(
        who=who.name,
        benchmark=str(found.path),
        boards=len(rows),
        unlabelled=sum(row.sum_of_costs is None for row in rows),
        complete=len(verdicts) == len(rows) * len(wanted),
        greedy=settings.greedy,
        samples=settings.samples,
        temperature=settings.temperature,
        cells=cells,
        teams=teams,
        pooled=pooled,
        refusals=dict(Counter(found.refusal for found in judged if found.refusal and found.sample == settings.first)),
        tokens=_count_tokens(answers, who.spent),
        judged=score_best_samples(rows, verdicts, wanted) if settings.samples else None,
        hole_ratios=hole_scores(rows, verdicts, settings.first),
    )
    with listed(out / "summary.json"):
        write_json(out / "summary.json", summary)
    return summary


def _count_tokens(answers: Sequence[AnswerRow], spent: float) -> Tokens:
    prompt = sum(answer.prompt_tokens or 0 for answer in answers)
    completion = sum(answer.completion_tokens or 0 for answer in answers)
    cut_off = sum(answer.finish == "length" for answer in answers)
    return Tokens(len(answers), prompt, completion, cut_off, spent)


class JudgedRow(msgspec.Struct, frozen=True):
    """A line of verdicts.jsonl: the verdict on an answer, and of a text without a plan reason and problem."""

    sample: int
    verdict: VerdictRow
    refusal: str | None = None
    problem: str | None = msgspec.field(default=None, name="told")


def judge_rows(rows: Sequence[Row], answers: Sequence[AnswerRow]) -> list[JudgedRow]:
    """The verdict of the simulator on each answer to its row, a batch of one size and number of agents at once."""
    plans = [_read_answer(row, answer) for row, answer in zip(rows, answers, strict=True)]
    return [
        JudgedRow(answer.sample, verdict, plan.reason, plan.problem)
        if isinstance(plan, Refused)
        else JudgedRow(answer.sample, verdict)
        for answer, plan, verdict in zip(answers, plans, judge_plans(rows, plans), strict=True)
    ]


def _read_answer(row: Row, answer: AnswerRow) -> list[str] | Refused:
    if answer.text is None:
        return answer.plan or Refused(Refusal.NO_PLAN, "the tokens of the answer name no plan")
    return read_plan(answer.text, row.agents)


class LabelledSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """labels.json: the hash of the benchmark whose boards are labelled."""

    benchmark: str
    format: int = 1


LABELS_CLAIM = Claim("set of labels", "labels.json", LabelledSet, 1, "lakewright benchmark eval", exclusive=False)


def label_rows(found: EvaluationSet, folder: Path, on_progress: Callable[[int], None]) -> EvaluationSet:
    """The set with certified labels, solved if the benchmark has no labels.

    Raises InputError if `folder` holds the labels of another benchmark.
    """
    if all(row.status for row in found.rows):
        return found
    bare, solved = folder / "boards.without_labels.jsonl", folder / "boards.jsonl"
    there = [path for path in (bare, solved) if path.exists()]
    # Earlier versions claimed whatever lay there, without the boards that they would have solved.
    if there and not (LABELS_CLAIM.is_in(folder) and bare.exists()):
        raise InputError(f"{there[-1]}: was not made by `lakewright benchmark eval`; choose another --out")
    for path in there:
        _check_same_boards(found, path)
    LABELS_CLAIM.take_folder(folder, LabelledSet(found.sha256), replace=not there)
    if not solved.exists():
        with listed(solved):
            _solve_rows(found, bare, solved, on_progress)
    rows = {row.id: row for row in read_all(solved)}
    return msgspec.structs.replace(found, rows=[rows[row.id] for row in found.rows])


def _check_same_boards(found: EvaluationSet, path: Path) -> None:
    there = {row.id: fingerprint(row) for row in read_all(path)}
    for row in found.rows:
        if there.get(row.id) != fingerprint(row):
            raise InputError(
                f"{path}: {row.id!r:.60} differs from the board in {found.path}; choose another --out, or remove "
                "boards*.jsonl and labels.json to solve the boards again"
            )


def _solve_rows(found: EvaluationSet, bare: Path, solved: Path, on_progress: Callable[[int], None]) -> None:
    if not bare.exists():
        with listed(bare):
            write_rows(bare, [_without_labels(row) for row in found.rows])

    def label(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[str, int]]:
        return solve_columns(rows, on_progress=on_progress), {}

    with parts_of(solved, job_of("benchmark eval", {"input": bare}, {}), SCHEMA) as parts:
        work_in_parts(bare, parts, unsolvable_here, label, _refuse_file)
        parts.assemble()


def _without_labels(row: Row) -> Row:
    return Row(row.id, row.size, row.agents, row.grid, row.starts, row.goals, row.hole_ratio)


def _refuse_file(problem: str) -> None:
    raise InputError(problem)
