"""What the engineer is shown: the evidence of one round, with context modules as switches."""

from collections.abc import Mapping, Sequence

import msgspec

from core_jax.config import EnvConfig
from core_jax.outcomes import Outcomes

GUIDELINE = (
    "Edit locally: change a few ratios by a little and keep what works. Act on the failures you see. "
    "Put the data just below the frontier of competence, where some plans are valid and some are not. "
    "Do not maximise difficulty: a size on which nearly every plan fails, or nearly none, gives little signal and gets "
    "less data, but never abandon a size, least of all a large one. Where an earlier edit went too far, take some back."
)


class Modules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which parts of the evidence are shown; the default is the paper's V6 (arXiv 2606.17682).

    failures: outcomes per map size, of this round and of those in the history. guideline: what good redesigns do.
    history: earlier rounds. default_in_history: round 0, the default config, is one of them. bookkeeping: the round's
    index and the number of rounds.
    """

    failures: bool = True
    guideline: bool = True
    history: bool = True
    default_in_history: bool = False
    bookkeeping: bool = True


class Round(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A config, and per map size the outcomes on the held-out set of the policy trained on it."""

    config: EnvConfig
    outcomes: dict[int, Outcomes]


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one round shows the engineer; what a module leaves out is empty or None.

    outcomes: per map size, on the held-out set. history: earlier rounds, oldest first.
    """

    config: EnvConfig
    outcomes: dict[int, Outcomes]
    guideline: str
    history: list[Round]
    round: int | None
    rounds: int | None


def gather(
    config: EnvConfig,
    outcomes: Mapping[int, Outcomes],
    past: Sequence[Round],
    round: int,
    rounds: int,
    modules: Modules,
) -> Evidence:
    """The evidence of round `round` of `rounds`, trained on `config`.

    `past` holds all earlier rounds, oldest first: its first is round 0, the default config. With `failures` off, no
    outcome is shown anywhere, and the history holds configs alone.
    """
    return Evidence(
        config=config,
        outcomes=dict(outcomes) if modules.failures else {},
        guideline=GUIDELINE if modules.guideline else "",
        history=_history(past, modules),
        round=round if modules.bookkeeping else None,
        rounds=rounds if modules.bookkeeping else None,
    )


def _history(past: Sequence[Round], modules: Modules) -> list[Round]:
    if not modules.history:
        return []
    shown = past if modules.default_in_history else past[1:]
    return [Round(old.config, old.outcomes if modules.failures else {}) for old in shown]
