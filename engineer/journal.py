"""The journal of a redesign: it notes the results of steps, so that an interrupted redesign continues with them."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from lakewright.engineer.design import Delta, Design
from lakewright.engineer.random_generators import Key, fold_key, make_key, numpy_rng
from lakewright.engineer.steps import Attempt, Next

T = TypeVar("T")
Step = Literal["comparison", "forecast", "evidence", "proposal", "trial", "next"]

# Rounds are fewer than 2^31, so no key of a trial is also a teacher's.
UNSEEN = 2**31  # added to the round for the key of its trial, so that the problems of trials are new


class Keys(NamedTuple):
    """The randomness of a redesign: the teacher's typed JAX key, and the seed of a trial's problems."""

    teacher: Key
    trial: int


def derive_keys(seed: int, round: int) -> Keys:
    """The keys of a round of an engineer of that seed."""
    # Seed and round alone decide the keys, so a redesign that is done again uses the same randomness.
    key = make_key(seed)
    return Keys(fold_key(key, round), int(numpy_rng(fold_key(key, UNSEEN + round)).integers(2**31)))


class TeacherAnswer(NamedTuple):
    """The proposals of a teacher with the guard's verdicts, of which the last counts, and its state afterwards."""

    attempts: list[Attempt]
    state: dict[str, Any]


class Reconsidered(NamedTuple):
    """Proposals of a policy as its own engineer, once it was trained on earlier ones.

    rivals: changes to be tried beside the first proposal. instead: without a trial, the first of these that is legal is
    taken; None: the first proposal is.
    """

    rivals: list[Delta]
    instead: list[Delta] | None


# What holds: a step is a function of the steps before it, the keys and the state of the engineer. So a redesign that
# was interrupted anywhere, and is begun again with the same journal, comes to the same end.
class Journal:
    """Notes nothing: in memory, each step is run."""

    def note(self, step: Step, make: Callable[[], T]) -> T:
        """The result of a step: the noted result, or else the result of `make`, which is then noted."""
        return make()

    def note_next(self, design: Design, decide: Callable[[], Next]) -> Next:
        """The design after `design`, with a new version if it differs, also if records have no versions."""

        def number_version(following: Next) -> Next:
            version = design.version + (following.design != design)
            return msgspec.structs.replace(following, design=msgspec.structs.replace(following.design, version=version))

        return number_version(self.note("next", lambda: number_version(decide())))

    def reconsider(self, attempts: Sequence[Attempt]) -> Reconsidered | None:
        """Further proposals after these, if a policy is trained on its own; None elsewhere."""
        return None
