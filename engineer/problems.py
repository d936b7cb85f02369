"""Problems, verdicts on answers to them, and groups of answers; and the faults that a user's may have."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from lakewright.core_jax.errors import InputError, suggest
from lakewright.core_jax.results import RolloutGroup
from lakewright.engineer.calls import show
from lakewright.engineer.cells import Cell, list_parts
from lakewright.engineer.number_limits import MOST_REWARD, is_reward, is_whole_number
from lakewright.engineer.space import DesignSpace

_JSON = msgspec.json.Encoder()
NUMBER = f"give a finite number, an int or a float of at most {MOST_REWARD:g}; convert a NumPy value by float(...)"


class Problem(msgspec.Struct, frozen=True):
    """One question, with everything needed to judge an answer.

    prompt: what a policy is asked. answer: a right answer, if one is known. data: JSON values that `judge` needs.
    cell, version: what it was drawn from; `draw` fills them in. key: equal problems have equal keys; by default a
    digest of the prompt.
    """

    prompt: str
    answer: str = ""
    data: Any = None
    cell: Cell = Cell("", ())
    version: int = 0
    key: str = ""


class Verdict(msgspec.Struct, frozen=True):
    """The judgement of an answer.

    valid: whether it solves the problem. reward: a number, at most MOST_REWARD in size. failure: why it is not valid,
    one of the space's failures; empty if it is. grades: the space's grades that a valid answer has. place: how far
    it got, -1 if that has no meaning.
    """

    valid: bool
    reward: float
    failure: str = ""
    grades: tuple[str, ...] = ()
    place: int = -1


class Group(RolloutGroup, frozen=True, kw_only=True):
    """Answers of one policy to one problem. rewards: one for each. cell, version: its own."""

    rewards: tuple[float, ...] = ()
    cell: Cell = Cell("", ())
    version: int = 0

    @classmethod
    def from_verdicts(
        cls, problem: Problem, verdicts: Sequence[Verdict], tokens: int | msgspec.UnsetType = msgspec.UNSET
    ) -> "Group":
        """The group of answers to a problem with these verdicts. tokens: the sum of their lengths, for gain per token.

        Raises InputError without a problem or a verdict, unless rewards are Python's numbers, and on other tokens.
        """
        if not isinstance(problem, Problem):
            raise InputError(f"group: {show(problem)} is no Problem; give the problem that was answered")
        where = f"group {problem.key!r:.60}"
        rewards = [verdict.reward for verdict in list_parts(f"{where}: verdicts", verdicts, Verdict)]
        if not rewards or not all(map(is_reward, rewards)):
            wrong = next((reward for reward in rewards if not is_reward(reward)), "missing")
            raise InputError(f"{where}: reward is {show(wrong, 20)}; {NUMBER}")
        if tokens is not msgspec.UNSET and not is_whole_number(tokens):
            raise InputError(f"{where}: tokens are {show(tokens)}; give the sum of the lengths, a whole number")
        rewards = list(map(float, rewards))
        counted = RolloutGroup.of(problem.key, [verdict.valid for verdict in verdicts], rewards)
        failures = Counter(verdict.failure for verdict in verdicts if not verdict.valid)
        fields = msgspec.structs.asdict(counted) | {"failures": dict(failures), "tokens": tokens}
        return cls(**fields, rewards=tuple(rewards), cell=problem.cell, version=problem.version)


def find_fault(problem: object) -> str:
    """The advice on how to make this a problem that a file can hold; empty if it is one."""
    if not isinstance(problem, Problem):
        return "return a Problem with texts"
    if type(problem) is not Problem:
        return "return a Problem, not a subclass, because files lose its other fields; put them into data"
    if not (isinstance(problem.prompt, str) and isinstance(problem.answer, str) and isinstance(problem.key, str)):
        return "return a Problem with texts as prompt, answer and key"
    try:
        _JSON.encode(problem)
    except UnicodeEncodeError:
        return "return a Problem with texts of valid Unicode, without halves of surrogate pairs"
    except Exception as error:
        return f"it does not fit into JSON ({error!s:.120}); let its data be JSON values"
    return ""


def find_fault_of_verdict(verdict: object, space: DesignSpace) -> str:
    """The fault of a verdict, with the remedy; empty if the verdict is correct."""
    if not isinstance(verdict, Verdict):
        return f"gave {show(verdict)}; return a Verdict"
    valid, failure, grades, place = verdict.valid, verdict.failure, verdict.grades, verdict.place
    if valid is not True and valid is not False:
        return f"valid is {show(valid)}; give True or False; convert a NumPy value by bool(...)"
    if not is_reward(verdict.reward):
        return f"reward is {show(verdict.reward, 20)}; {NUMBER}"
    if valid and failure != "":
        return f"failure is {show(failure)} though the answer is valid; leave it empty"
    if not valid and not (isinstance(failure, str) and failure in space.failures):
        return f"failure {show(failure)} is not declared; {suggest(failure, space.failures)}"
    if not isinstance(grades, tuple | list):
        return f"grades are {show(grades)}; give a tuple of names"
    if grades and (strange := [grade for grade in grades if grade not in space.grades]):
        return f"grade {show(strange[0])} is not declared; choose from {', '.join(space.grades) or 'none'}"
    if not isinstance(place, int) or isinstance(place, bool) or place < -1:
        return f"place is {show(place)}; give a whole number, at least -1"
    return ""


def make_plain(verdict: Verdict) -> Verdict:
    """A verdict without fields of a subclass, numbers of NumPy, large ints and lists, which are others after JSON."""
    reward, grades = verdict.reward, verdict.grades
    plain = type(reward) is float or (type(reward) is int and abs(reward) < 2**53)
    if type(verdict) is Verdict and plain and type(grades) is tuple:
        return verdict
    reward = reward if plain else float(reward)
    return Verdict(verdict.valid, reward, verdict.failure, tuple(grades), verdict.place)
