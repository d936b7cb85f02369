"""The prompt of a language model as the teacher: its task after the evidence, and the JSON schema of its answer."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lakewright.engineer.cells import Knob, Stratum
from lakewright.engineer.design import Design
from lakewright.engineer.evidence.evidence import Evidence, show_evidence
from lakewright.engineer.evidence.modules import EvidenceSettings, fit_to_budget
from lakewright.engineer.evidence.text_form import evidence_text, token_estimate
from lakewright.engineer.evidence.vocabulary import STRIDES
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.windows import list_windowed

Message = dict[str, str]  # role and content
ANSWER = "ANSWER:"  # what comes between reasoning and JSON
REASON, REASONING = 160, 1000  # characters; llama.cpp takes no grammar of 1500
TASK = """\
## Your task
For each {stratum}, change {columns}. Give signed changes:
{changes}
0 keeps a value. Shares are made to sum to one afterwards, and what is illegal or too large a change is cut back.
Give a short reason for each {stratum}, first of all.{summary}
Think first. Then write a line {answer} and below it one JSON object of this form, with nothing after it,
with a number for each <change> and your own words for each <why>:
{form}
"""
SUMMARY = "\nAdd a summary of this round for yourself: you will read it in the next one."


class Asked(NamedTuple):
    """A question to a model, the JSON schema of its answer, and what was cut from the evidence to fit."""

    messages: list[Message]
    schema: dict[str, Any]
    cut: tuple[str, ...]


def ask_about(
    evidence: Evidence,
    design: Design,
    space: DesignSpace,
    settings: EvidenceSettings,
    key: Key,
    *,
    inline: bool = False,
) -> Asked:
    """The question to a model about the evidence, with the schema of its answer.

    Args:
        evidence, design, space: as in `Teacher.propose`.
        settings: choose what is shown.
        key: draws what the view of the evidence shows.
        inline: as in `LlmTeacher`.
    """
    # The view is cut to the budget before the question is written, so the question itself is never cut.
    modules = settings.chosen()
    view = show_evidence(evidence, modules, key)
    view, cut = fit_to_budget(view, settings.budget, lambda view: token_estimate(evidence_text(view, space)))
    strata, columns = space.sort_strata(design.strata), map_columns(design, space)
    schema = answer_schema(strata, space, inline=inline, summary=modules.self_summary, columns=columns)
    return Asked(_write_messages(view, strata, space, columns, summary=modules.self_summary), schema, cut)


def map_columns(design: Design, space: DesignSpace) -> dict[str, Knob]:
    """The columns that a question names; the upper ends of windows, if a stratum of the design has one, are among them.

    So a model is asked about windows only once a design has some.
    """
    wide = {knob for row in design.strata.values() for knob in list_windowed(row, space.knobs)}
    names = ((column, [column.name, *[column.top] * (column in wide)]) for column in space.columns)
    return {name: column for column, some in names for name in some}


def answer_schema(
    strata: Sequence[Stratum],
    space: DesignSpace,
    *,
    inline: bool,
    summary: bool,
    columns: Mapping[str, Knob] | None = None,
) -> dict[str, Any]:
    """The JSON schema of an answer for some strata: changes in whole steps, texts of bounded length.

    All fields are required and no others allowed, as strict servers demand; `parse_reply` is more lenient.

    Args:
        strata: the strata that may be changed.
        space: the design space.
        inline: whether the reasoning is a field.
        summary: whether a summary of the round is a field.
        columns: the columns, as from `map_columns`; by default the space's.
    """
    columns = columns or {column.name: column for column in space.columns}
    changes = {name: {"enum": _list_steps(column)} for name, column in columns.items()}
    edit = object_schema({"reason": _line_schema(REASON), **changes})
    edits = object_schema({str(stratum): edit for stratum in strata})
    before = {"reasoning": _line_schema(REASONING, placeholders="")} if inline else {}
    return object_schema({**before, "edits": edits, **({"summary": _line_schema(REASON)} if summary else {})})


def prompt_text(messages: Sequence[Message]) -> str:
    """Messages as a text to be read."""
    return "\n\n".join(f"[{message['role']}]\n{message['content']}" for message in messages)


def _write_messages(
    view: Evidence, strata: Sequence[Stratum], space: DesignSpace, columns: Mapping[str, Knob], *, summary: bool
) -> list[Message]:
    words = space.words
    steps = {name: ", ".join(f"{step:g}" for step in _list_steps(column)) for name, column in columns.items()}
    *first, last = (_explain_column(name, column, space) for name, column in columns.items())
    filled = (words.question or TASK).format(
        stratum=words.stratum,
        columns=f"{', '.join(first)} and {last}" if first else last,
        changes="\n".join(f"- {name}: {values}" for name, values in steps.items()),
        answer=ANSWER,
        form=_write_form(strata, columns, summary=summary),
        summary=SUMMARY if summary else "",
    )
    content = f"{evidence_text(view, space)}\n{filled}"
    return [{"role": "system", "content": words.system()}, {"role": "user", "content": content}]


def _explain_column(name: str, column: Knob, space: DesignSpace) -> str:
    """The meaning of a column, with its range, or of the upper end of its window."""
    if name == column.top:
        return f"how far {column.name} goes up ({name}; a change of {column.name} moves both ends)"
    among = "" if column is space.share else f", {column.low:g} to {column.high:g}"
    return f"{column.meaning or column.short} ({column.name}{among})"


def _write_form(strata: Sequence[Stratum], columns: Iterable[str], *, summary: bool) -> str:
    """The form of an answer. It is not JSON itself because small models copy an example to the letter."""
    edit = ",".join(['"reason":"<why>"', *(f'"{name}":<change>' for name in columns)])
    edits = ",".join(f'"{stratum}":{{{edit}}}' for stratum in strata)
    last = ',"summary":"<summary>"' if summary else ""
    return f'{{"edits":{{{edits}}}{last}}}'


def _list_steps(column: Knob) -> list[float]:
    return sorted(round(stride * column.step, 6) for stride in (0, *STRIDES))


def object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of an object that has all of these fields and no others."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _line_schema(most: int, placeholders: str = "<>") -> dict[str, Any]:
    # Without quotes, backslashes and control characters: llama.cpp matches what a dot means against raw JSON. And
    # without what encloses the placeholders of the form, as these must not be copied.
    return {"type": "string", "pattern": rf'^[^"\\{placeholders}\x00-\x1f]{{1,{most}}}$'}
