"""The reading test of language models as engineers, on any environment and without training a policy.

A folder holds reading.json, which questions they are; answers.jsonl, which grows by a line an answer; and results.json,
results.md and reading.svg, made again from all answers of the folder.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from lakewright.core_jax.support import listed, write_atomically, write_json
from lakewright.engineer.environment import Environment
from lakewright.engineer.reading import (
    RULES,
    Form,
    FormAnswer,
    FormReader,
    Pair,
    Solved,
    answer_by_rule,
    ask_in_form,
    draw_pairs,
    score_reader,
)
from lakewright.experiments.jobs.resumable.claims import Claim
from lakewright.experiments.jobs.resumable.journal import LineJournal
from lakewright.experiments.studies.reading.reading_table import RULE, Result, draw_results, format_results

SOLVED = 32  # pairs from which examples are taken
SOLVED_SEED = 1_000_003  # they are others than those of the test
ANSWERS, RESULTS, TABLE, PICTURE = "answers.jsonl", "results.json", "results.md", "reading.svg"


class ReadingWork(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """reading.json: the questions. Models and forms may be added to a folder.

    environment: its name. space: its signature. pairs, seed, strata: see `draw_pairs`. columns: see
    `ask_in_form`. digest: the pairs' digest, because another version may draw others.
    """

    format: int
    environment: str
    space: str
    pairs: int
    seed: int
    strata: int
    columns: list[str] = []
    digest: str = ""


class AnswerLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of answers.jsonl: an answer to the true (0) or exchanged (1) evidence of a pair."""

    model: str
    form: str
    pair: int
    side: int
    answer: FormAnswer


CLAIM = Claim("reading test", "reading.json", ReadingWork, 1, "lakewright engineer read")


def run_reading_test(
    folder: Path,
    work: ReadingWork,
    environment: Environment,
    models: Sequence[str],
    forms: Sequence[Form],
    load: Callable[[str], FormReader],
    on_progress: Callable[[int], object] = lambda answers: None,
) -> list[Result]:
    """Asks each model in each form, and returns the scores of all answers in the folder, the rule's first.

    Args:
        folder: the test's folder.
        work: the test's questions, whose digest is filled in.
        environment: the questions' environment.
        models: names; `load` makes a reader of a name when it is asked.
        forms: the questions' forms.
        on_progress: gets the number of answers since the last call.

    Answers that the folder holds are not asked for again. Raises InputError if it holds another test, or another
    process works there.
    """
    pairs = draw_pairs(environment, work.pairs, work.seed, work.strata)
    work = msgspec.structs.replace(work, digest=hash_pairs(pairs))
    of = msgspec.json.encode(work).decode()
    with CLAIM.hold_folder(folder, work), LineJournal(folder / ANSWERS, AnswerLine, of) as journal:
        found = {(line.model, line.form, line.pair, line.side): line.answer for line in journal}
        for model in models:
            missing = [
                (form, pair, side)
                for form in forms
                for pair in range(len(pairs))
                for side in (0, 1)
                if (model, form.name, pair, side) not in found
            ]
            on_progress(2 * len(pairs) * len(forms) - len(missing))
            reader = load(model) if missing else None
            solved = solve_questions(environment, work.strata) if missing else []
            for form, place, side in missing:
                assert reader
                pair = pairs[place]
                known = [question for kind, question in solved if kind == pair.kind]
                answer = ask_in_form(form, reader, pair.evidence[side], environment.space, known, work.columns)
                journal.add(AnswerLine(model, form.name, place, side, answer))
                found[model, form.name, place, side] = answer
                on_progress(1)
        results = _score_answers(pairs, found, environment)
        _write_results(folder, results)
    return results


def hash_pairs(pairs: Sequence[Pair]) -> str:
    """The digest of the evidence of pairs."""
    shown = msgspec.json.encode([pair.evidence for pair in pairs])
    return hashlib.sha256(shown).hexdigest()[:16]


def solve_questions(environment: Environment, strata: int) -> list[tuple[str, Solved]]:
    """Questions with the rule's answers, and what they show, from which examples are taken."""
    pairs = draw_pairs(environment, SOLVED, SOLVED_SEED, strata)
    return [
        (pair.kind, Solved(shown, RULES[pair.kind].make_delta(shown, pair.design, environment.space)))
        for pair in pairs
        for shown in pair.evidence
    ]


def _score_answers(
    pairs: Sequence[Pair], found: dict[tuple[str, str, int, int], FormAnswer], environment: Environment
) -> list[Result]:
    """The scores of the models and forms of which all answers are there."""
    results = [
        Result(RULE, "", score_reader(pairs, [answer_by_rule(pair, environment) for pair in pairs], environment))
    ]
    for model, form in dict.fromkeys((model, form) for model, form, _, _ in found):
        both = [(found.get((model, form, place, 0)), found.get((model, form, place, 1))) for place in range(len(pairs))]
        whole = [(true, other) for true, other in both if true is not None and other is not None]
        if len(whole) == len(pairs):
            results.append(Result(model, form, score_reader(pairs, whole, environment)))
    return results


def _write_results(folder: Path, results: Sequence[Result]) -> None:
    texts = {TABLE: format_results(results) + "\n", PICTURE: draw_results(results)}
    for name, text in texts.items():
        with listed(folder / name):
            write_atomically(folder / name, text.encode())
    with listed(folder / RESULTS):
        write_json(folder / RESULTS, results)
