"""The `Teacher` protocol and its `Proposal`."""

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, get_args

import msgspec

from lakewright.core_jax.errors import InputError, one_line
from lakewright.core_jax.support import convert
from lakewright.engineer.cells import Cell, Stratum
from lakewright.engineer.delta import derive_delta, weigh_cells
from lakewright.engineer.delta_parsing import encode_delta
from lakewright.engineer.design import Delta, Design, DesignRow
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace


class AnswerTokens(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt and its answers as token strings, because the text alone doesn't determine the tokenization."""

    prompt: list[str]
    answers: list[list[str]]


class Proposal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question to a teacher and its answer, verbatim; `delta` is None, with an `error`, if it cannot be used.

    candidates: further deltas that a trial may prefer to `delta`, best first. summary: the teacher's own, of
    this round, shown to it in the next if the evidence says so. cut: what of the evidence did not fit its budget of
    tokens. tokens: how many were generated for the answer. dollars: what a server took for it. spoken: what was asked
    and answered, if a language model is trained on it.
    """

    prompt: str
    answer: str
    delta: Delta | None
    error: str = ""
    candidates: tuple[Delta, ...] = ()
    summary: str = ""
    cut: tuple[str, ...] = ()
    tokens: int = 0
    dollars: float = 0.0
    spoken: AnswerTokens | None = None


class Teacher(Protocol):
    """Maps evidence to a change of the design; never raises because of a model's answer."""

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """A change of `design`, which need not be legal: the guard decides. All chance comes from `key`, consumed.

        Args:
            evidence: everything known after the round.
            design: the design of the round's problems.
            space: the design space.
            key: from `make_key` in `lakewright.engineer.random_generators`; the only source of randomness.
        """

    def state_dict(self) -> dict[str, Any]:
        """The state that a resumed run must restore, as JSON values."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict` gave."""


def save_state(teacher: Teacher) -> dict[str, Any]:
    """The state of a teacher as JSON values. Raises InputError if it isn't a dict of JSON values."""
    where = f"{type(teacher).__name__}.state_dict"
    try:
        found = msgspec.to_builtins(teacher.state_dict(), str_keys=True)
    except TypeError as error:
        raise InputError(f"{where}: {one_line(str(error)):.120}; return JSON values") from error
    if not isinstance(found, dict):
        raise InputError(f"{where} gave {found!r:.60}; return a dict of JSON values, which may be empty")
    return found


def check_space(part: object, space: DesignSpace) -> None:
    """Raises InputError if a teacher or sampler cannot work with a space; such a class has `check_space`, too."""
    if check := getattr(part, "check_space", None):
        check(space)


@dataclasses.dataclass
class Stateful:
    """A teacher or a sampler whose state are the fields that are not options, `dataclasses.field(init=False)`, if any.

    Their types say how they are read. Tables by cell are written by the names of the cells. reads_outcomes: whether a
    teacher has nothing to say without outcomes since its last proposal.
    """

    reads_outcomes: ClassVar[bool] = False

    @classmethod
    def list_state(cls) -> list[dataclasses.Field]:
        """The fields of the state."""
        return [field for field in dataclasses.fields(cls) if not field.init]

    def state_dict(self) -> dict[str, Any]:
        """The state, as JSON values."""
        return {field.name: _write_state(getattr(self, field.name)) for field in self.list_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict` gave. Raises InputError if it is of another form."""
        for field in self.list_state():
            setattr(self, field.name, _read_state(state[field.name], field.type, f"state: {field.name}"))


def _write_state(value: Any) -> Any:
    table = {str(name): part for name, part in value.items()} if isinstance(value, dict) else value
    return msgspec.to_builtins(table, str_keys=True)


def _read_state(raw: Any, kind: Any, where: str) -> Any:
    if get_args(kind)[:1] != (Cell,):
        return convert(raw, kind, where)
    table = convert(raw, dict[str, Any], where)
    return {Cell.from_name(name): convert(part, get_args(kind)[1], where, name) for name, part in table.items()}


def propose_delta(delta: Delta) -> Proposal:
    """The proposal of a teacher that computes its delta and is not prompted."""
    return Proposal(prompt="", answer=encode_delta(delta), delta=delta)


def propose_nothing() -> Proposal:
    """The proposal that keeps the design."""
    return propose_delta(Delta({}))


def success_by_bin(evidence: Evidence, design: Design, space: DesignSpace) -> dict[Cell, float]:
    """The share of valid answers of a stage's rollouts by cell of the grid.

    evidence, design, space: as in `Teacher.propose`.
    """
    totals: dict[Cell, list[int]] = {}
    for seen in evidence.groups:
        counts = totals.setdefault(space.bin_cell(seen.cell, design.strata), [0, 0])
        counts[0] += seen.groups.valid
        counts[1] += seen.groups.completions
    return {cell: valid / answers for cell, (valid, answers) in totals.items() if answers}


class CellTeacher(Stateful, abc.ABC):
    """A teacher that weighs cells: after each stage the weights become a design by `weigh_cells`.

    reason: the reason of its edits.
    """

    reads_outcomes = True

    reason: ClassVar[str]

    @abc.abstractmethod
    def weigh(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Mapping[Cell, float]:
        """The weights of cells, not negative, after a stage with rollouts; without any above 0, the design stays.

        Args:
            evidence, design, space, key: as in `Teacher.propose`.
        """

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The design of the weights. Without rollouts, no edits."""
        weights = self.weigh(evidence, design, space, key) if evidence.groups else {}
        if not any(weights.values()):
            return propose_nothing()
        return propose_rows(design, weigh_cells(weights, design, space), self.reason, space)


def propose_rows(design: Design, rows: Mapping[Stratum, DesignRow], reason: str, space: DesignSpace) -> Proposal:
    """The proposal that changes `design` into these rows.

    Args:
        design: the current one.
        rows: the new rows by stratum.
        reason: the reason of all edits.
        space: the design space.
    """
    return propose_delta(derive_delta(design, rows, reason, space))
