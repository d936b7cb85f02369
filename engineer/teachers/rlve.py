"""RLVE's rule: the level rises by one where the hardest level is solved. Zeng et al. 2025, arXiv 2511.07317."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec

from lakewright.core_jax.support import Count, Share
from lakewright.engineer.cells import Cell, Stratum
from lakewright.engineer.design import Design
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.proposal import CellTeacher
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace

Levels = Annotated[int, msgspec.Meta(ge=2, le=100)]


class Track(msgspec.Struct):
    """h, and the problems, answers and valid answers at this level since the last check."""

    hardest: int = 0
    prompts: int = 0
    answers: int = 0
    valid: int = 0


@dataclass
class RlveTeacher(CellTeacher):
    """Problems are drawn uniformly from the levels l .. h. With R_h the share of valid answers at level h since the
    last check, and a check once there are `prompts` problems of that level,

        h <- h + 1 where R_h >= threshold,    l <- max(0, h - window + 1),    h = 0 at first.

    The level of a cell of the grid is floor(levels x `DesignSpace.hardness` of the cell). A stage that drew nothing of
    level h does not change it. Strata without an order are environments of their own, as in the source: each has its h,
    and all get equal shares.
    """

    reason = "the window of levels whose hardest is not solved yet"
    threshold: Share = 0.9
    window: Levels = 4
    levels: Levels = 12
    prompts: Count = 8
    tracks: dict[str, Track] = field(default_factory=dict, init=False)  # by stratum, where these have no order

    def weigh(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> dict[Cell, float]:
        """The cells of the windows. Deterministic."""
        for seen in evidence.groups:
            if seen.cell.stratum in design.strata:
                track = self._find_track(seen.cell.stratum, space)
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
        """The cells of the window of some strata; the easiest of all where it holds none."""
        hardest = self._find_track(strata[0], space).hardest
        lowest = max(0, hardest - self.window + 1)
        grid = space.grid(strata)
        window = [cell for cell in grid if lowest <= self.find_level(cell, design, space) <= hardest]
        return window or [min(grid, key=lambda cell: space.hardness(cell, design.strata))]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """As `Stateful.load_state_dict`; also of a version that counted each stage by itself."""
        old = {"tracks": {"": {"hardest": state["hardest"]}}} if "hardest" in state else state
        super().load_state_dict(old)

    def _find_track(self, stratum: Stratum, space: DesignSpace) -> Track:
        return self.tracks.setdefault("" if space.ranked else str(stratum), Track())

    def _check_track(self, track: Track) -> None:
        if track.answers and track.prompts >= self.prompts:
            if track.valid / track.answers >= self.threshold:
                track.hardest = min(track.hardest + 1, self.levels - 1)
            track.prompts = track.answers = track.valid = 0
