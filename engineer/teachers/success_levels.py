"""Teachers whose level follows the success rate: AdaRFT, RLVE's rule and reasoning-gym's coaching."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec

from lakewright.core_jax.support import Count, Natural, Share, Weight
from lakewright.engineer.cells import Cell, Stratum
from lakewright.engineer.delta import join_edits, make_edit
from lakewright.engineer.design import Design, Edit
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.evidence.vocabulary import TOO_EASY, TOO_HARD, vocabulary_of
from lakewright.engineer.proposal import CellTeacher, Proposal, Stateful, propose_delta
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.teachers.rules import check_order
from lakewright.engineer.windows import find_ends

LevelCount = Annotated[int, msgspec.Meta(ge=2, le=100)]


@dataclass
class AdaRFTTeacher(CellTeacher):
    """AdaRFT (Shi et al. 2025, arXiv 2504.05520), a target difficulty that follows the success rate:

    d <- clip(d + eta tanh(alpha (R - beta)), 0, 1), with R the success rate of the stage's training rollouts.

    The next stage draws from the `nearest` cells of the grid, those whose difficulty is nearest to d, all alike. The
    difficulty of a cell is `DesignSpace.hardness`; the first d is the current design's. The
    paper's scale is 0 .. 100 with eta = 50, alpha = 2, beta = 0.5.
    """

    reason = "the cells nearest to the target difficulty"
    eta: Weight = 0.5
    alpha: Weight = 2.0
    beta: Share = 0.5
    nearest: Count = 10
    target: float | None = field(default=None, init=False)

    def weigh(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> dict[Cell, float]:
        """The cells about the moved target, all alike. Deterministic."""
        completions = sum(cell.groups.completions for cell in evidence.groups)
        success = sum(cell.groups.valid for cell in evidence.groups) / completions
        # The first target is where training is, so the first stage after it continues from there instead of jumping.
        if self.target is None:
            shares = space.cells(design)
            self.target = sum(space.hardness(cell, design.strata) * share for cell, share in shares.items())
        target = self.target = self.move_target(self.target, success)
        order = sorted(space.grid(design.strata), key=lambda cell: abs(space.hardness(cell, design.strata) - target))
        return dict.fromkeys(order[: self.nearest], 1.0)

    def move_target(self, target: float, success: float) -> float:
        """The target after a success rate."""
        return min(1.0, max(0.0, target + self.eta * math.tanh(self.alpha * (success - self.beta))))


class Track(msgspec.Struct):
    """h, and the problems, answers and valid answers at this level since the last check."""

    hardest: int = 0
    prompts: int = 0
    answers: int = 0
    valid: int = 0


@dataclass
class RlveTeacher(CellTeacher):
    """RLVE's rule (Zeng et al. 2025, arXiv 2511.07317): the level rises by one if the hardest level is solved.

    Problems are drawn uniformly from the levels l .. h. With R_h the share of valid answers at level h since the
    last check, and a check once there are `prompts` problems of that level,

        h <- h + 1 if R_h >= threshold,    l <- max(0, h - window + 1),    h = 0 at first.

    The level of a cell of the grid is floor(levels x `DesignSpace.hardness` of the cell). A stage that drew nothing of
    level h does not change it. Strata without an order are environments of their own, as in the source: each has its h,
    and all get equal shares.
    """

    reason = "the window of levels whose hardest is not solved yet"
    threshold: Share = 0.9
    window: LevelCount = 4
    levels: LevelCount = 12
    prompts: Count = 8
    tracks: dict[str, Track] = field(default_factory=dict, init=False)  # by stratum, where these have no order

    def weigh(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> dict[Cell, float]:
        """The cells of the windows. Deterministic."""
        for seen in evidence.groups:
            if seen.cell.stratum in design.strata:
                track = self._find_track(seen.cell.stratum, space)
                # Easier levels of the window do not count: a policy that solves only these must not rise.
                if self.find_level(seen.cell, design, space) == track.hardest:
                    track.prompts += seen.groups.groups
                    track.answers += seen.groups.completions
                    track.valid += seen.groups.valid
        for track in self.tracks.values():
            self._check_track(track)
        weights: dict[Cell, float] = {}
        parts = [list(design.strata)] if space.ranked else [[stratum] for stratum in design.strata]
        for strata in parts:
            cells = self.list_window(strata, design, space)
            weights |= dict.fromkeys(cells, 1.0 if space.ranked else 1 / len(cells))
        return weights

    def find_level(self, cell: Cell, design: Design, space: DesignSpace) -> int:
        """0 .. levels - 1."""
        return min(self.levels - 1, int(self.levels * space.hardness(cell, design.strata)))

    def list_window(self, strata: Sequence[Stratum], design: Design, space: DesignSpace) -> list[Cell]:
        """The cells of the window of some strata; the easiest of all if it is empty."""
        hardest = self._find_track(strata[0], space).hardest
        lowest = max(0, hardest - self.window + 1)
        grid = space.grid(strata)
        window = [cell for cell in grid if lowest <= self.find_level(cell, design, space) <= hardest]
        return window or [min(grid, key=lambda cell: space.hardness(cell, design.strata))]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `Stateful.load_state_dict`; also of a version that counted each stage by itself."""
        old = {"tracks": {"": {"hardest": state["hardest"]}}} if "hardest" in state else state
        super().load_state_dict(old)

    def _find_track(self, stratum: Stratum, space: DesignSpace) -> Track:
        return self.tracks.setdefault("" if space.ranked else str(stratum), Track())

    def _check_track(self, track: Track) -> None:
        if track.answers and track.prompts >= self.prompts:
            if track.valid / track.answers >= self.threshold:
                track.hardest = min(track.hardest + 1, self.levels - 1)
            # The counts restart also if the level stays, so an old failure does not delay a policy that learned
            # since.
            track.prompts = track.answers = track.valid = 0


@dataclass
class CoachingTeacher(Stateful):
    """The coaching of reasoning-gym (Stojanovski et al. 2025, arXiv 2505.24760, and its training example in
    `training/trainers/ray_grpo_trainer.py`), per stratum, with R the share of valid answers among its training rollouts
    since its last decision:

    R > success: every knob one step harder. R < failure: every knob one step easier. Else, or with at most `last`
    answers, the stratum stays. Shares never change.

    reasoning-gym moves upper bounds alone, so that easy problems never leave and a step down can fail; here a knob is
    the value that problems have, and stops at the ends of its range.
    """

    reads_outcomes = True

    success: Share = 0.7
    failure: Share = 0.3
    last: Natural = 0
    counts: dict[str, list[int]] = field(default_factory=dict, init=False)  # answers and valid ones by stratum

    def __post_init__(self) -> None:
        check_order("failure", self.failure, "success", self.success)

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The delta of the rule. Deterministic. Without rollouts, no edits."""
        for seen in evidence.groups:
            counts = self.counts.setdefault(str(seen.cell.stratum), [0, 0])
            counts[0] += seen.groups.completions
            counts[1] += seen.groups.valid
        edits = {}
        for stratum in space.sort_strata(design.strata):
            answers, valid = self.counts.get(str(stratum), (0, 0))
            if not answers or answers <= self.last:
                continue
            # Only the answers since the last decision count; those before were at another level.
            del self.counts[str(stratum)]
            way = (valid / answers > self.success) - (valid / answers < self.failure)
            edits[stratum] = _make_edit(stratum, way, design, space)
        return propose_delta(join_edits(edits))


def _make_edit(stratum: Stratum, way: int, design: Design, space: DesignSpace) -> Edit:
    """A step harder (way 1) or easier (-1) of every knob, inside its range."""
    changes = {}
    for knob in space.knobs:
        low, high = space.limits(stratum, knob)
        # A window moves as a whole; the end that leads decides whether there is room.
        now = find_ends(design.strata[stratum], knob)[way * knob.harder > 0]
        changes[knob.name] = min(high, max(low, now + way * knob.harder * knob.step)) - now
    reason = vocabulary_of(space).reasons[TOO_EASY if way > 0 else TOO_HARD]
    return make_edit(space, reason, changes)
