"""Teachers that follow no evidence: baselines and controls for experiments."""

from typing import Annotated, Any

import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.engineer.cells import Stratum
from lakewright.engineer.delta import make_edit
from lakewright.engineer.design import Delta, Design, DesignRow, Edit
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.evidence.vocabulary import STRIDES
from lakewright.engineer.proposal import (
    Proposal,
    Stateful,
    Teacher,
    check_space,
    propose_delta,
    propose_nothing,
    propose_rows,
)
from lakewright.engineer.random_generators import Key, numpy_rng, split_key
from lakewright.engineer.space import DesignSpace, normalize_rows
from lakewright.engineer.teachers.rules import can_step
from lakewright.engineer.windows import find_ends

Tilt = Annotated[float, msgspec.Meta(ge=-20, le=20)]  # beyond, all data are of one stratum


class FixedTeacher(Stateful):
    """Proposes no edits: the paper's fixed config."""

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """A delta without edits."""
        return propose_nothing()


class StaticTeacher(Stateful):
    """Goes to one design and stays: `values` of the knobs for all strata, data in proportion to size ** `tilt`.

    The size of a stratum is its number, or its rank from 1 if strata are names; `length` of the teacher `difficulty`
    is the same. A knob is also an option itself, such as `hole_ratio` on the lake; others stay in the middle. A search
    trains once with each of some options and takes the best by validation.
    """

    def __init__(self, tilt: Tilt = 0.0, values: dict[str, float] = {}, **knobs: float) -> None:  # noqa: B006
        self.values = {**knobs, **values}
        self.tilt = tilt

    def check_space(self, space: DesignSpace) -> None:
        """Raises InputError on a value of a knob that a space does not have, or outside the knob's range."""
        knobs = {knob.name: knob for knob in space.knobs}
        for name, value in self.values.items():
            if name not in knobs:
                said = f"{name:.60} is {value:g}, and no knob has that name"
                raise InputError(f"teacher static: {said}; give values of {', '.join(knobs) or 'none'}")
            low, high = knobs[name].low, knobs[name].high
            if not low <= value <= high:
                raise InputError(f"teacher static: {name} is {value:g}; choose {low:g} to {high:g}")

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The delta to the static design. Deterministic."""
        rows: dict[Stratum, DesignRow] = {}
        for stratum in design.strata:
            rows[stratum] = {space.share.name: float(size_of(stratum, space)) ** self.tilt}
            for knob in space.knobs:
                rows[stratum][knob.name] = self.values.get(knob.name, sum(space.limits(stratum, knob)) / 2)
        return propose_rows(design, normalize_rows(rows, space), f"the static {space.words.design}", space)


def size_of(stratum: Stratum, space: DesignSpace) -> float:
    """The size of a stratum: its number, or its rank from 1 if that is not above 0."""
    return stratum if isinstance(stratum, int) and stratum > 0 else space.ranks[stratum] + 1


class DomainRandomisationTeacher(Stateful):
    """theta ~ U(box) (Tobin et al. 2017, arXiv 1703.06907): knobs uniform in their ranges, and shares uniform on the
    simplex, drawn again for every stage. The sampler of the same name draws theta for every few problems instead.
    """

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The delta to a random design."""
        rng = numpy_rng(key)
        shares = rng.dirichlet([1.0] * len(design.strata)).tolist()
        rows: dict[Stratum, DesignRow] = {}
        for stratum, share in zip(space.sort_strata(design.strata), shares, strict=True):
            rows[stratum] = {space.share.name: share}
            for knob in space.knobs:
                rows[stratum][knob.name] = float(rng.uniform(*space.reachable(stratum, knob)))
        ordered = {stratum: rows[stratum] for stratum in design.strata}
        return propose_rows(design, normalize_rows(ordered, space), "drawn uniformly from the box", space)


class RandomTeacher(Stateful):
    """Edits a uniform number of strata, each in a uniform number of columns, by steps that stay inside their ranges."""

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """Random edits of 1 to all strata of `design`."""
        strata, rng = list(design.strata), numpy_rng(key)
        places = rng.permutation(len(strata))[: rng.integers(1, len(strata) + 1)].tolist()
        chosen = space.sort_strata(strata[place] for place in places)
        return propose_delta(Delta({one: self._draw_edit(one, design.strata[one], space, rng) for one in chosen}))

    def _draw_edit(self, stratum: Stratum, row: DesignRow, space: DesignSpace, rng: np.random.Generator) -> Edit:
        places = rng.permutation(len(space.columns))[: rng.integers(1, len(space.columns) + 1)].tolist()
        changes = {}
        for column in (space.columns[place] for place in places):
            fitting = [stride for stride in STRIDES if can_step(stratum, row, column, stride, space)]
            changes[column.name] = int(rng.choice(fitting)) * column.step if fitting else 0.0
        return make_edit(space, "drawn at random", changes)


class MatchedRandomTeacher:
    """Asks another teacher, and gives its edits to random strata, each change with a random sign.

    So the number of edits and the absolute changes of each column are the other teacher's: this control
    separates the choice from the change. A sign that would leave the range is turned. Asking costs what it costs the
    other teacher, whose prompt, error, summary, state and tokens are this one's too.
    """

    def __init__(self, other: Teacher) -> None:
        self.other = other
        self.follows_schedule = getattr(other, "follows_schedule", False)
        self.reads_outcomes = getattr(other, "reads_outcomes", False)
        self.needs_rates = getattr(other, "needs_rates", False)

    def check_space(self, space: DesignSpace) -> None:
        """As the other teacher's. Raises InputError if it cannot work with a space."""
        check_space(self.other, space)

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The other teacher's proposal with its edits dealt to random strata."""
        asking, dealing = split_key(key)
        asked = self.other.propose(evidence, design, space, asking)
        if asked.delta is None:
            return asked
        rng, strata = numpy_rng(dealing), space.sort_strata(design.strata)
        edits = [edit for stratum, edit in asked.delta.edits.items() if stratum in design.strata]
        drawn = [strata[place] for place in rng.permutation(len(strata))[: len(edits)]]
        dealt = {
            stratum: _turn_signs(design.strata[stratum], edit, space, rng)
            for stratum, edit in zip(drawn, edits, strict=True)
        }
        own = propose_delta(Delta({stratum: dealt[stratum] for stratum in space.sort_strata(dealt)}))
        costs = {"tokens": asked.tokens, "dollars": asked.dollars}
        return msgspec.structs.replace(own, prompt=asked.prompt, summary=asked.summary, cut=asked.cut, **costs)

    def state_dict(self) -> dict[str, Any]:
        """The other teacher's."""
        return self.other.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The other teacher's."""
        self.other.load_state_dict(state)


def _turn_signs(row: DesignRow, edit: Edit, space: DesignSpace, rng: np.random.Generator) -> Edit:
    changes = {}
    for column in space.columns:
        change = abs(edit.changes.get(column.name, 0.0)) * float(rng.choice([-1, 1]))
        low, high = (0.0, 1.0) if column.trait else (column.low, column.high)
        first, last = (end + change for end in find_ends(row, column))
        inside = low <= first and last <= high
        # If both signs leave the range, the guard cuts the change back.
        changes[column.name] = change if inside or not change else -change
    return make_edit(space, "a random edit of the same size as another teacher's", changes)


class SaboteurTeacher(Stateful):
    """A test of the defences: it always asks for the problems from which least can be learned.

    All data to the stratum whose valid rate v has the least v (1 - v), the last of several; and every stratum as hard
    as can be if v < 1/2 or is unknown, else as easy as can be. What of it is legal is the guard's to say.
    """

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The worst design. Deterministic."""
        rates = {stratum: seen.valid_rate for stratum, seen in evidence.outcomes.items()}
        valid = {stratum: rates.get(stratum, 0.0) for stratum in design.strata}
        worst = min(design.strata, key=lambda one: (valid[one] * (1 - valid[one]), -space.ranks[one]))
        rows: dict[Stratum, DesignRow] = {}
        for stratum in design.strata:
            rows[stratum] = {space.share.name: float(stratum == worst)}
            for knob in space.knobs:
                low, high = space.limits(stratum, knob)
                # A knob of unknown direction counts as harder when it is higher.
                hard = (valid[stratum] < 0.5) == (knob.harder >= 0)
                rows[stratum][knob.name] = high if hard else low
        return propose_rows(design, normalize_rows(rows, space), f"the worst {space.words.design}", space)
