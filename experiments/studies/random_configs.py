"""Random designs: one of a study's runs trains on each, or all runs of a seed begin with its own."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import Count, HoleRatio, Natural, Share
from lakewright.engineer.cells import Knob, Stratum
from lakewright.engineer.design import Design, DesignRow
from lakewright.engineer.environment import Environment
from lakewright.engineer.guard import is_drawable

if TYPE_CHECKING:
    from lakewright.experiments.loop.training.trainee import Trainee

PARTS = 4  # a trait is one of five shares, a quarter of its range apart
MOST = 10_000  # combinations of values; of more, as many are drawn as are tried
ValueList = Sequence[float]


class Configs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Random designs. As arms of one stage each, they show whether the trial's score predicts the gain in training.

    Shares are uniform on the simplex, values uniform from lists, all drawable. hole_ratios, wait_ratios: the lists of
    the lake. Of other environments, levels have their `points`, and traits five shares over their range. rounds: of
    successive halving; with 1 every config is trained to its end.
    """

    count: Count = 24
    seed: Natural = 0
    hole_ratios: tuple[HoleRatio, ...] = (0.0, 0.1, 0.2, 0.3, 0.4)
    wait_ratios: tuple[Share, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)
    rounds: Count = 1

    def __post_init__(self) -> None:
        if (most := self.count.bit_length()) < self.rounds:
            raise ValueError(
                f"rounds is {self.rounds}, but {self.count} configs can be halved {most - 1} times; give at most {most}"
            )


def random_configs(chosen: Configs, trainee: "Trainee") -> Iterator[tuple[str, Design]]:
    """The designs by name, over the strata of the first design of a trainee.

    Raises InputError if a stratum has no problems at the given values, or the environment has no such lists.
    """
    space = trainee.environment.space
    lists = {"hole_ratio": chosen.hole_ratios, "wait_ratio": chosen.wait_ratios}
    for name in lists.keys() - {knob.name for knob in space.knobs}:
        if lists[name] != getattr(Configs(), f"{name}s"):
            raise InputError(f"configs: {name}s is given, but the environment has no knob {name}; leave it out")

    def values_of(stratum: Stratum, knob: Knob) -> ValueList:
        return lists.get(knob.name) or spread_values(knob, *space.limits(stratum, knob))

    rng = np.random.default_rng(chosen.seed)
    for number in range(chosen.count):
        yield f"config-{number:02d}", _draw_design(trainee.environment, trainee.start, values_of, rng)


def spread_values(knob: Knob, low: float, high: float) -> ValueList:
    """The values of a knob from low to high that are drawn from."""
    if not knob.trait:
        return knob.list_points(low, high)
    return list(dict.fromkeys(knob.round_value(low + place * (high - low) / PARTS) for place in range(PARTS + 1)))


def _draw_design(
    environment: Environment, start: Design, values_of: Callable[[Stratum, Knob], ValueList], rng: np.random.Generator
) -> Design:
    space, shares = environment.space, rng.dirichlet(np.ones(len(start.strata))).round(3)
    shares[-1] = round(1 - float(shares[:-1].sum()), 3)
    rows = {}
    for stratum, share in zip(start.strata, shares.tolist(), strict=True):
        ways = [values_of(stratum, knob) for knob in space.knobs]
        rows[stratum] = {space.share.name: share, **_draw_values(environment, start, stratum, ways, rng)}
    return start.replace(rows)


def _draw_values(
    environment: Environment, start: Design, stratum: Stratum, ways: Sequence[ValueList], rng: np.random.Generator
) -> DesignRow:
    """The first of some combinations of values, in random order, of which all problems can be drawn."""
    space = environment.space
    for values in _shuffle(ways, rng):
        row: DesignRow = {knob.name: value for knob, value in zip(space.knobs, values, strict=True)}
        alone = start.replace({stratum: {space.share.name: 1.0, **row}})
        if all(is_drawable(environment, cell, start) for cell in space.cells(alone)):
            return row
    label = space.words.label(stratum)
    raise InputError(f"configs: no {space.words.problems} of {label} can be drawn at these values; give others")


def _shuffle(ways: Sequence[ValueList], rng: np.random.Generator) -> Iterator[ValueList]:
    """A value of each way: all combinations in random order, or of more than MOST as many at random."""
    lengths = [len(way) for way in ways]
    if math.prod(lengths) > MOST:
        places = (tuple(rng.integers(lengths)) for _ in range(MOST))
    else:
        places = (np.unravel_index(number, lengths) for number in rng.permutation(math.prod(lengths)))
    for chosen in places:
        yield [way[place] for way, place in zip(ways, chosen, strict=True)]
