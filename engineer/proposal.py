"""The `Teacher` protocol and its `Proposal`."""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from lakewright.engineer.cells import Stratum
from lakewright.engineer.delta import derive_delta, encode_delta
from lakewright.engineer.design import Delta, Design, Row
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace


class Spoken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt and the answers to it as the tokens of a language model, as text does not tell how it was cut."""

    prompt: list[str]
    answers: list[list[str]]


class Proposal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question to a teacher and its answer, verbatim; `delta` is None, with an `error`, if it cannot be used.

    candidates: further deltas that a trial may prefer to `delta`, best first. summary: the teacher's own, of
    this round, shown to it in the next where the evidence says so. cut: what of the evidence did not fit its budget of
    tokens. tokens: how many were generated for the answer. dollars: what a server took for it. spoken: what was asked
    and answered, where a language model is trained on it.
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
    spoken: Spoken | None = None


class Teacher(Protocol):
    """Maps evidence to a change of the design; never raises because of what a model answered."""

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """A change of `design`, which need not be legal: the guard decides. All chance comes from `key`, consumed.

        evidence: all that is known; a teacher that is a language model shows it what its modules switch on.
        design: what the round's problems were drawn from.
        space: what may be changed.
        key: a typed key of JAX.
        """

    def state_dict(self) -> dict[str, Any]:
        """The state that a resumed run must restore, as JSON values."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict` gave."""


def check_space(teacher: Teacher, space: DesignSpace) -> None:
    """Raises InputError where a teacher cannot work with a space; one that may not be able to has `check_space`."""
    if check := getattr(teacher, "check_space", None):
        check(space)


class Stateless:
    """The state of a teacher or a sampler that has none."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to restore."""


def propose_delta(delta: Delta) -> Proposal:
    """The proposal of a teacher that computes its delta and is not prompted."""
    return Proposal(prompt="", answer=encode_delta(delta), delta=delta)


def propose_nothing() -> Proposal:
    """The proposal that keeps the design."""
    return propose_delta(Delta({}))


def propose_rows(design: Design, rows: Mapping[Stratum, Row], reason: str, space: DesignSpace) -> Proposal:
    """The proposal that changes `design` into these rows.

    design: the current one. rows: by stratum. reason: of all edits. space: that of the design.
    """
    return propose_delta(derive_delta(design, rows, reason, space))
