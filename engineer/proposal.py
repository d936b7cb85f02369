"""What a teacher is."""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.engineer.delta import ConfigDelta, difference
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.random_generators import Key


class Spoken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt and the answers to it as the tokens of a language model, as text does not tell how it was cut."""

    prompt: list[str]
    answers: list[list[str]]


class Proposal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a teacher was asked and answered, word for word; `delta` is None, with an `error`, if it cannot be used.

    candidates: further deltas that a trial may prefer to `delta`, best first. summary: the teacher's own, of
    this round, shown to it in the next where the evidence says so. cut: what of the evidence did not fit its budget of
    tokens. tokens: how many were generated for the answer. dollars: what a server took for it. spoken: what was asked
    and answered, where a language model is trained on it.
    """

    prompt: str
    answer: str
    delta: ConfigDelta | None
    error: str = ""
    candidates: tuple[ConfigDelta, ...] = ()
    summary: str = ""
    cut: tuple[str, ...] = ()
    tokens: int = 0
    dollars: float = 0.0
    spoken: Spoken | None = None


class Teacher(Protocol):
    """Maps evidence to a change of the config; never raises because of what a model answered."""

    def propose(self, evidence: Evidence, config: EnvConfig, key: Key) -> Proposal:
        """A change of `config`, which need not be legal: the guard decides. All chance comes from `key`, consumed.

        `evidence` holds all that is known; a teacher that is a language model shows it what its modules switch on.
        """

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run must restore, as JSON values."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what `state_dict` gave."""


class Stateless:
    """The state of a teacher or a sampler that has none."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to restore."""


def decided(delta: ConfigDelta) -> Proposal:
    """The proposal of a teacher that computes its delta and is not prompted."""
    return Proposal(prompt="", answer=msgspec.json.encode(delta).decode(), delta=delta)


def moved_to(config: EnvConfig, sizes: Mapping[int, SizeConfig], reason: str) -> Proposal:
    """The proposal that changes `config` into these sizes."""
    return decided(difference(config, sizes, reason))
