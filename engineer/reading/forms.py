"""Forms in which a language model is asked about evidence: what it is shown of it, and how it answers."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.engineer.cells import Knob, Stratum
from lakewright.engineer.delta import join_edits, make_edit
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.difficulty.model import value_of
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.evidence.modules import EvidenceSettings
from lakewright.engineer.random_generators import make_key
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.tally import Tally, subtract_tally
from lakewright.engineer.teachers.llm import parse_reply
from lakewright.engineer.teachers.llm_prompt import Message, ask_about, object_schema

ColumnPlace: TypeAlias = tuple[Stratum, str]
"""A stratum and a column."""
MORE, SAME, LESS = "more", "same", "less"
SIGNS = {MORE: 1, SAME: 0, LESS: -1}
BEGUN = '{"change":"'  # the beginning of the JSON of one decision
REASON = "asked in the form {name}"
LEVELS = (
    (0.05, "nearly none"),
    (0.2, "few"),
    (0.4, "less than half"),
    (0.6, "about half"),
    (0.8, "more than half"),
    (0.95, "most"),
    (1.1, "nearly all"),
)


class FormReader(Protocol):
    """A language model that is asked."""

    def write(self, messages: Sequence[Message], schema: dict[str, Any]) -> str:
        """The answer to a question, JSON of a schema."""
        ...

    def weigh(self, messages: Sequence[Message], begun: str, choices: Sequence[str]) -> list[float]:
        """The log-probability of each choice as what follows the beginning of an answer, among the choices."""
        ...


class Form(msgspec.Struct, frozen=True):
    """A form of a question.

    name: the form's name. shows: the evidence as in the loop, or a line a stratum with its rates as numbers, words, or
    ranks. asks: the form asks for a delta with reasons; for more, same or less of each column in one JSON object; or
    for one such decision at a time. alone: only the line of the stratum in question is shown. examples: the number of
    solved examples before the question.
    """

    name: str
    shows: Literal["evidence", "numbers", "words", "ranks"]
    asks: Literal["delta", "changes", "one"]
    alone: bool = False
    examples: int = 0


_FORMS = (
    Form("delta", "evidence", "delta"),
    Form("numbers", "numbers", "changes"),
    Form("words", "words", "changes"),
    Form("numbers-one", "numbers", "one"),
    Form("words-one", "words", "one"),
    Form("ranks-one", "ranks", "one"),
    Form("words-alone", "words", "one", alone=True),
    Form("words-alone-examples", "words", "one", alone=True, examples=8),
    Form("ranks-alone-examples", "ranks", "one", alone=True, examples=8),
)
FORMS = {form.name: form for form in _FORMS}
"""The forms by name."""


def choose_forms(names: Sequence[str]) -> list[Form]:
    """The forms of these names. Raises InputError on one that does not exist."""
    if unknown := [name for name in names if name not in FORMS]:
        raise InputError(f"form {unknown[0]!r:.60} is unknown; choose from {', '.join(FORMS)}")
    return [FORMS[name] for name in names]


class FormAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer: the delta that it means, or why it means no delta. odds: by stratum and column, of one decision at a
    time, the log-odds of more against less."""

    delta: Delta | None
    error: str = ""
    text: str = ""
    odds: dict[str, float] = {}


class Solved(NamedTuple):
    """A question with its right answer: evidence, and the delta of a rule."""

    evidence: Evidence
    delta: Delta


def ask_in_form(
    form: Form,
    reader: FormReader,
    evidence: Evidence,
    space: DesignSpace,
    solved: Sequence[Solved] = (),
    columns: Sequence[str] = (),
) -> FormAnswer:
    """The answer of a reader to the question what of the evidence's design to change, asked in a form.

    Args:
        form: the question's form.
        reader: the model.
        evidence: outcomes or a forecast.
        space: the design space.
        solved: from which examples are taken.
        columns: the columns that a form of one decision asks about; if empty, all.
    """
    if form.asks == "one":
        return _ask_one_by_one(form, reader, evidence, space, _write_examples(form, solved, space), columns)
    messages, schema = write_question(form, evidence, space)
    text = reader.write(messages, schema)
    try:
        delta = parse_reply(text, space)[0] if form.asks == "delta" else _read_changes(text, form, evidence, space)
    except InputError as error:
        return FormAnswer(None, str(error)[:200], text[:2000])
    return FormAnswer(delta, text=text[:2000])


def write_question(form: Form, evidence: Evidence, space: DesignSpace) -> tuple[list[Message], dict[str, Any]]:
    """The question of a form that asks for all changes at once, and the schema of its answer."""
    if form.asks == "delta":
        shown = EvidenceSettings("forecast" if evidence.forecast else "v6")
        asked = ask_about(evidence, evidence.design, space, shown, make_key(0))
        return asked.messages, asked.schema
    edit = object_schema({column.name: {"enum": [MORE, SAME, LESS]} for column in space.columns})
    facts = _map_facts(evidence, space)
    task = [
        f"For each {space.words.stratum} answer {MORE}, {SAME} or {LESS} for each of:",
        *(f"- {column.name}: {_explain(column, space)}" for column in space.columns),
    ]
    content = "\n".join([*(_write_line(form, stratum, facts, space) for stratum in facts), "", *task])
    return _make_messages(content, evidence, form, space), object_schema({str(stratum): edit for stratum in facts})


def write_decision(
    form: Form, evidence: Evidence, place: tuple[Stratum, Knob], space: DesignSpace, before: str = ""
) -> list[Message]:
    """The question of a form for one decision: more or less of a column of a stratum.

    Args:
        form: the question's form.
        evidence, space: what the question is about.
        place: the stratum and the column.
        before: text of solved examples.
    """
    return _make_messages(before + _write_decision(form, evidence, place, space), evidence, form, space)


def map_signs(delta: Delta | None, design: Design, space: DesignSpace) -> dict[ColumnPlace, int]:
    """The sign of the change of each stratum and column, 0 if it stays; without a delta all stay.

    delta: the changes. design: gives the strata. space: the design space.
    """
    changes = {stratum: edit.changes for stratum, edit in delta.edits.items()} if delta else {}
    return {
        (stratum, column.name): int(np.sign(changes.get(stratum, {}).get(column.name, 0.0)))
        for stratum in space.sort_strata(design.strata)
        for column in space.columns
    }


def encode_changes(delta: Delta, design: Design, space: DesignSpace) -> str:
    """The answer to `write_question` of a form that asks for changes, which a delta is.

    delta: the changes. design: gives the strata. space: the design space.
    """
    found: dict[str, dict[str, str]] = {}
    for (stratum, column), sign in map_signs(delta, design, space).items():
        found.setdefault(str(stratum), {})[column] = choose_word(sign)
    return msgspec.json.encode(found).decode()


def choose_word(sign: int) -> str:
    """The word of a sign."""
    return next(word for word, known in SIGNS.items() if known == sign)


def _ask_one_by_one(
    form: Form, reader: FormReader, evidence: Evidence, space: DesignSpace, before: str, columns: Sequence[str]
) -> FormAnswer:
    odds: dict[ColumnPlace, float] = {}
    asked = [column for column in space.columns if not columns or column.name in columns]
    for stratum, column in itertools.product(space.sort_strata(evidence.design.strata), asked):
        messages = write_decision(form, evidence, (stratum, column), space, before)
        more, less = reader.weigh(messages, BEGUN, [f'{MORE}"}}', f'{LESS}"}}'])
        odds[stratum, column.name] = more - less
    delta = make_steps({place: int(np.sign(lead)) for place, lead in odds.items()}, form.name, space)
    return FormAnswer(delta, odds={name_place(*place): lead for place, lead in odds.items()})


def name_place(stratum: Stratum, column: str) -> str:
    """The name of a stratum and a column in `FormAnswer.odds`."""
    return f"{stratum} {column}"


def make_steps(signs: Mapping[ColumnPlace, int], asked: str, space: DesignSpace) -> Delta:
    """A delta of one step for each sign. asked: names the form in the reason. space: the design space."""
    steps = {column.name: column.step for column in space.columns}
    changes: dict[Stratum, dict[str, float]] = {}
    for (stratum, column), sign in signs.items():
        changes.setdefault(stratum, {})[column] = sign * steps[column]
    reason = REASON.format(name=asked)
    return join_edits({stratum: make_edit(space, reason, found) for stratum, found in changes.items()})


def _read_changes(text: str, form: Form, evidence: Evidence, space: DesignSpace) -> Delta:
    """The delta of an answer in text. Raises InputError if it is not JSON of the schema."""
    words = dict[str, dict[str, Literal["more", "same", "less"]]]
    try:
        found = msgspec.json.decode(text.rpartition("ANSWER:")[2].strip(), type=words)
    except msgspec.MsgspecError as error:
        raise InputError(f"answer: {error}; answer with JSON of the schema") from error
    named = {str(stratum): stratum for stratum in evidence.design.strata}
    columns = {column.name for column in space.columns}
    if found.keys() - named.keys() or any(changes.keys() - columns for changes in found.values()):
        raise InputError("answer: names something that is not in the design; name its strata and columns")
    signs = {(named[name], key): SIGNS[word] for name, changes in found.items() for key, word in changes.items()}
    return make_steps(signs, form.name, space)


class _Fact(NamedTuple):
    """P(valid) of a part of a stratum; the whole has no label."""

    label: str
    success: float


def _map_facts(evidence: Evidence, space: DesignSpace) -> dict[Stratum, list[_Fact]]:
    """Of each stratum the rate of the whole, then its parts: by trait, or the cells of the forecast.

    Empty if nothing is known.
    """
    facts = {}
    for stratum in space.sort_strata(evidence.design.strata):
        if evidence.forecast:
            p = {forecast.cell: forecast.p for forecast in evidence.forecast.grid}
            cells = [cell for cell in space.list_stated_cells(stratum, p) if cell in p]
            parts = [_Fact(_name_values(cell.values, space), p[cell]) for cell in cells]
            facts[stratum] = [_Fact("", float(np.mean([part.success for part in parts]))), *parts] if parts else []
        else:
            tally = evidence.outcomes.get(stratum, Tally(0, 0))
            parts = _list_traits(tally, evidence.by_trait.get(stratum, {}), space)
            facts[stratum] = [_Fact("", tally.valid_rate), *parts] if tally.problems else []
    return facts


def _list_traits(tally: Tally, by_trait: Mapping[str, Tally], space: DesignSpace) -> list[_Fact]:
    facts = []
    for place in space.traits:
        knob = space.knobs[place]
        if part := by_trait.get(knob.name):
            sides = ((True, part), (False, subtract_tally(tally, part)))
            facts += [_Fact(space.words.trait(knob, has), seen.valid_rate) for has, seen in sides if seen.problems]
    return facts


def _name_values(values: Iterable[Any], space: DesignSpace) -> str:
    return ", ".join(
        space.words.trait(knob, bool(value)) if knob.trait else f"{knob.name} {value:g}"
        for knob, value in zip(space.knobs, values, strict=True)
    )


def _write_line(form: Form, stratum: Stratum, facts: Mapping[Stratum, Sequence[_Fact]], space: DesignSpace) -> str:
    label, answers = space.words.label(stratum), space.words.answers
    if not facts[stratum]:
        return f"{label}: nothing is known"
    whole, *parts = facts[stratum]
    say = "{:.0%}".format if form.shows == "numbers" else say_rate
    valid = f"{say(whole.success)} of the {answers} are valid"
    if form.shows == "ranks":
        wholes = [found[0] for found in facts.values() if found]
        lines = [f"{label}: teaching rank {_rank_worth(whole, wholes)} of {len(wholes)}"]
        lines += [f"{part.label}: rank {_rank_worth(part, parts)} of {len(parts)}" for part in parts]
        return "; ".join([*lines, valid])
    return "; ".join([f"{label}: {valid}", *(f"{part.label}: {say(part.success)}" for part in parts)])


def _rank_worth(fact: _Fact, among: Sequence[_Fact]) -> int:
    """1 for the largest p (1 - p)."""
    worth = value_of(fact.success, "learnability")
    return 1 + sum(value_of(other.success, "learnability") > worth + 1e-9 for other in among)


def say_rate(success: float) -> str:
    """A share of answers as words."""
    return next(words for top, words in LEVELS if success < top)


def _write_decision(form: Form, evidence: Evidence, place: tuple[Stratum, Knob], space: DesignSpace) -> str:
    stratum, column = place
    facts = _map_facts(evidence, space)
    shown = [stratum] if form.alone else list(facts)
    lines = [_write_line(form, one, facts, space) for one in shown]
    return "\n".join([*lines, f"{space.words.label(stratum)}, {_explain(column, space)}: {MORE} or {LESS}?"])


def _write_examples(form: Form, solved: Sequence[Solved], space: DesignSpace) -> str:
    """Decisions with their answers, as many of each answer as there are."""
    half = form.examples // 2
    chosen: dict[int, list[str]] = {1: [], -1: []}
    for text, sign in _solve_decisions(form, solved, space):
        if text not in chosen[sign] and len(chosen[sign]) < half:
            chosen[sign].append(text)
    texts = [*chosen[1], *chosen[-1]]
    return "".join(texts[place] for place in np.random.default_rng(0).permutation(len(texts)))


def _solve_decisions(form: Form, solved: Sequence[Solved], space: DesignSpace) -> Iterator[tuple[str, int]]:
    """Decisions of solved questions as texts with their answers, and the signs of these; of a question one of each."""
    for evidence, delta in solved if form.examples else ():
        signs: set[int] = set()
        for stratum, column in itertools.product(delta.edits, space.columns):
            sign = int(np.sign(delta.edits[stratum].changes.get(column.name, 0.0)))
            if sign and sign not in signs:
                signs.add(sign)
                text = _write_decision(form, evidence, (stratum, column), space)
                yield f'{text}\n{BEGUN}{choose_word(sign)}"}}\n\n', sign


def _make_messages(content: str, evidence: Evidence, form: Form, space: DesignSpace) -> list[Message]:
    return [{"role": "system", "content": _write_guide(form, evidence, space)}, {"role": "user", "content": content}]


def _write_guide(form: Form, evidence: Evidence, space: DesignSpace) -> str:
    """The task in three sentences."""
    words = space.words
    seen = f"shares of {words.answers} that are {'expected to be ' if evidence.forecast else ''}valid"
    if form.shows == "ranks":
        first = f"Give more {words.problems} to what has teaching rank 1, and less to the last rank."
    else:
        first = (
            f"Give more {words.problems} where about half of the {words.answers} are valid, and less where nearly all "
            "or nearly none are."
        )
    second = f"Make {words.problems} harder where nearly all are valid, and easier where nearly none are."
    return f"You choose the {words.problems} that a policy trains on next, by the {seen}. {first} {second}"


def _explain(column: Knob, space: DesignSpace) -> str:
    """The meaning of a column, and whether problems get harder as it rises."""
    meaning = column.meaning or column.short
    if column.trait or column is space.share or not column.harder:
        return meaning
    return f"{meaning} (more is {'harder' if column.harder > 0 else 'easier'})"
