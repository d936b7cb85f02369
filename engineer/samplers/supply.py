"""The supply of an engineer and of sources: problems of a design by place, what a sampler chose, and what that cost."""

import itertools
import random
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.engineer.calls import show
from lakewright.engineer.cells import Cell
from lakewright.engineer.design import Design
from lakewright.engineer.difficulty.forecasting import Forecast
from lakewright.engineer.environment import Environment
from lakewright.engineer.plugins import load_class
from lakewright.engineer.problems import Problem
from lakewright.engineer.proposal import check_space
from lakewright.engineer.random_generators import make_key
from lakewright.engineer.samplers.base import MOST_TURNS, Rollout, Sampled
from lakewright.engineer.samplers.registry import METHODS, SAMPLERS, SamplerSettings, make_sampler
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.trial.trial import RollOut, check_rollouts

FIRST_TURN, TURNS = 1000, 1000  # of rollouts, beyond those of trials


class Sampling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The work of a sampler.

    again: places that got another problem than the first. barren: places for which no problem with signal was found.
    scored, tokens: groups rolled out, and their tokens.
    """

    again: int = 0
    barren: int = 0
    scored: int = 0
    tokens: int = 0

    def add(self, other: "Sampling") -> "Sampling":
        """The sums of both."""
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return Sampling(*(one + two for one, two in pairs))


class Supply:
    """Problems of some places of a design and a seed, and others of the strata of these: a `Fresh`.

    Design, seed, place and turn alone determine a problem.
    """

    def __init__(
        self,
        environment: Environment,
        design: Design,
        seed: int,
        places: Sequence[int],
        forecast: Forecast | None = None,
    ) -> None:
        """Makes a supply.

        Args:
            environment: draws the problems.
            design: the distribution of the problems.
            seed: seed of the problems.
            places: places of the problems, in order.
            forecast: forecast of the difficulty model for the design.
        """
        self.environment, self.design, self.seed, self.forecast = environment, design, seed, forecast
        self.places = places
        self.first: list[Problem] = []  # problems of the places so far
        self._shares: dict[tuple[object, ...], tuple[list[Cell], list[float]]] = {}
        self._alone: dict[Cell, Design] = {}

    def draw(self, design: Design, count: int, seed: int, first: int) -> list[Problem]:
        """Problems first .. first + count - 1 of the set of a design and a seed."""
        return self.environment.draw(design, count, seed, first=first)

    def __call__(self, count: int, design: Design | None = None) -> list[Problem]:
        """The problems of the next places. design: by default the supply's."""
        places = self.places[len(self.first) : len(self.first) + count]
        # Places are mostly consecutive; one call lets an environment draw them together, as the lake does.
        whole = count and list(places) == list(range(places[0], places[0] + count))
        parts = [(places[0], count)] if whole else [(place, 1) for place in places]
        drawn = [self.draw(design or self.design, size, self.seed, place) for place, size in parts]
        found = list(itertools.chain.from_iterable(drawn))
        self.first += found
        return found

    def find_cell(self, index: int, turn: int) -> Cell:
        """The cell, with its givens, from which `draw_again` draws."""
        return self.environment.canonical(self.environment.space.name_cell(self._choose_cell(index, turn)))

    def draw_again(self, index: int, turn: int) -> Problem:
        """Another problem of the stratum of one that was drawn, its cell by chance as the design has them there.

        index: index of that problem, from 0. turn: from 1; after MOST_TURNS, of a cell with the traits of that problem.
        """
        # The cell is drawn from the stratum's own part of the design, so the mix within the stratum does not change
        # either.
        cell = self._choose_cell(index, turn)
        return self.draw_alone(cell, _derive_seed(self.seed, f"again {turn}"), self.places[index])

    def draw_alone(self, cell: Cell, seed: int, place: int) -> Problem:
        """The problem at a place of the set of a seed, and of the design if it had this cell alone."""
        if type(self.environment).draw is Environment.draw:  # of one cell it is this, without a design for each problem
            return self.environment.draw_one(cell, seed, place, self.design.version)
        if cell not in self._alone:
            space = self.environment.space
            row = {knob.name: float(value) for knob, value in zip(space.knobs, cell.values, strict=True)}
            self._alone[cell] = self.design.replace({cell.stratum: {space.share.name: 1.0, **row}})
        return self.draw(self._alone[cell], 1, seed, place)[0]

    def _choose_cell(self, index: int, turn: int) -> Cell:
        like = self._name_part(self.first[index].cell, turn)
        if like not in self._shares:
            cells = self.environment.cells(self.design)
            found = {cell: share for cell, share in cells.items() if self._name_part(cell, turn) == like}
            self._shares[like] = list(found), list(found.values())
        # Seed, turn and place alone, not a running generator: another process that asks for this turn gets this
        # problem.
        chance = random.Random(f"{self.seed} again {turn} place {self.places[index]}")
        return chance.choices(*self._shares[like])[0]

    def _name_part(self, cell: Cell, turn: int) -> tuple[object, ...]:
        """The part of the design from which a turn draws: a cell's stratum, and for late turns its traits."""
        if turn <= MOST_TURNS:
            return (cell.stratum,)
        values = zip(self.environment.space.knobs, cell.values, strict=True)
        return cell.stratum, *(bool(value) for knob, value in values if knob.trait)


def list_places(first: int, count: int, where: str = "draw") -> range:
    """The places first .. first + count - 1. Raises InputError, which names `where`, unless count is whole, from 0."""
    if not isinstance(count, int) or not 0 <= count < 2**63:
        raise InputError(f"{where}: count is {show(count, 20)}; give a whole number, at least 0, below 2^63")
    return range(first, first + count)


def choose_sampler(
    settings: SamplerSettings, name: str, space: DesignSpace, *, roll_out: RollOut | Literal["later"] | None = "later"
) -> SamplerSettings:
    """The settings with a sampler of that name, if any.

    roll_out: samples the policy; a sampler of that name may need it.

    Raises InputError if it doesn't keep the shares of strata, doesn't suit the space, or a setting has no effect.
    """
    chosen = msgspec.structs.replace(settings, name=name) if name else settings
    if not _has(chosen.name, "keeps_shares"):
        choices = ", ".join(known for known in SAMPLERS if _has(known, "keeps_shares"))
        raise InputError(f"sampler {chosen.name} does not keep the shares of the design; choose from {choices}")
    if chosen.plans != SamplerSettings().plans and not rolls_out(chosen):
        said = f"sampler.plans is {chosen.plans}, but the sampler {chosen.name} samples no answers"
        raise InputError(f"{said}; leave it out, or choose redraw")
    if chosen.plans == 1 and rolls_out(chosen):
        raise InputError("sampler.plans is 1, but one answer alone has no signal; choose at least 2")
    check_space(make_sampler(chosen.name, chosen.options), space)
    if name and roll_out is None:  # of a name in the settings, a client of the engineer gives it later
        check_roll_out(chosen, None, given=False)
    return chosen


def rolls_out(settings: SamplerSettings) -> bool:
    """Return True if the sampler needs the policy's answers before it chooses."""
    return _has(settings.name, "rolls_out")


def _has(name: str, quality: str) -> bool:
    """Return True if the class of a sampler sets this attribute."""
    return bool(getattr(load_class(name, SAMPLERS, "sampler", METHODS), quality, False))


def check_roll_out(settings: SamplerSettings, roll_out: RollOut | None, *, given: bool) -> None:
    """Raises InputError if a sampler lacks the `roll_out` that it needs, or has one that it doesn't use."""
    name = settings.name
    if rolls_out(settings) and roll_out is None:
        said = f"sampler {name} needs the policy's answers first"
        raise InputError(f"{said}; pass roll_out, or begin with rollouts.url of its server or with the sampler signal")
    if given and not rolls_out(settings):
        raise InputError(
            f"roll_out is given, but the sampler {name} samples no answers; leave it out, or begin with redraw"
        )


def choose_problems(
    settings: SamplerSettings, supply: Supply, roll_out: RollOut | None = None
) -> tuple[Sampled, Sampling]:
    """The problems that the sampler chooses for all places, each of the stratum of the first one of its place.

    Args:
        settings: the sampler's settings, from `choose_sampler`.
        supply: a supply that has drawn no problem yet.
        roll_out: samples the current policy.

    Raises InputError if a sampler of a user's own gives something else, or `roll_out` fails.
    """
    if not supply.places:
        return Sampled([], 0), Sampling()
    sampler, tokens, scorings, name = make_sampler(settings.name, settings.options), 0, 0, settings.name

    def score(problems: list[Problem]) -> list[Rollout]:
        nonlocal tokens, scorings
        if roll_out is None:
            raise InputError(f"sampler {name} needs the policy's answers first; pass roll_out, or choose signal")
        # Distinct from the turns of trials, so that the two never sample with the same seed.
        turn = FIRST_TURN + (supply.places[0] + scorings) % TURNS
        groups, spent = check_rollouts(roll_out(problems, settings.plans, turn), problems, settings.plans)
        tokens, scorings = tokens + spent, scorings + 1
        return list(zip(problems, groups, strict=True))

    count, key = len(supply.places), make_key(_derive_seed(supply.seed, f"sampler {supply.places[0]}"))
    drawn = sampler.draw(count, supply, score, key)
    if fault := _find_fault(drawn, supply):
        raise InputError(f"sampler {name}: gave {fault}; keep the stratum of each place's first problem")
    return drawn, Sampling(sum(map(bool, drawn.turns)), len(drawn.barren), drawn.scored, tokens)


def _find_fault(drawn: Any, supply: Supply) -> str:
    """The fault of a sampler's choice; empty without a fault."""
    count, first = len(supply.places), supply.first
    if not isinstance(drawn, Sampled) or not len(drawn.problems) == len(drawn.turns) == len(first) == count:
        return f"{show(drawn)} for {count} places"
    for index, (problem, turn) in enumerate(zip(drawn.problems, drawn.turns, strict=True)):
        if problem.cell.stratum != first[index].cell.stratum or not (turn or problem == first[index]):
            return f"turn {turn}, a problem of {problem.cell}, for place {index}, whose first is of {first[index].cell}"
    return ""


def _derive_seed(seed: int, purpose: str) -> int:
    """An independent 31-bit seed, without JAX."""
    return random.Random(f"{seed} {purpose}").getrandbits(31)
