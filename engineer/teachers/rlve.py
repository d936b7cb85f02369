"""RLVE's rule: the level rises by one where the hardest level is solved. Zeng et al. 2025, arXiv 2511.07317."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from lakewright.core_jax.support import Count, Share, convert
from lakewright.engineer.cells import Cell, Stratum
from lakewright.engineer.delta import weigh_cells
from lakewright.engineer.design import Design
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.proposal import Proposal, propose_nothing, propose_rows
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace

REASON = "the window of levels whose hardest is not solved yet"
Levels = Annotated[int, msgspec.Meta(ge=2, le=100)]


class Track(msgspec.Struct):
    """h, and the problems, answers and valid answers at this level since the last check."""

    hardest: int = 0
    prompts: int = 0
    answers: int = 0
    valid: int = 0


class RlveTeacher:
    """Problems are drawn uniformly from the levels l .. h. With R_h the share of valid answers at level h since the
    last check, and a check once there are `prompts` problems of that level,

        h <- h + 1 where R_h >= threshold,    l <- max(0, h - window + 1),    h = 0 at first.

    The level of a cell of the grid is floor(levels x `DesignSpace.hardness` of the cell). A stage that drew nothing of
    level h does not change it. Strata without an order are environments of their own, as in the source: each has its h,
    and all get equal shares.
    """

    def __init__(self, threshold: Share = 0.9, window: Levels = 4, levels: Levels = 12, prompts: Count = 8) -> None:
        self.threshold = threshold
        self.window = window
        self.levels = levels
        self.prompts = prompts
        self.tracks: dict[str, Track] = {}

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The design of the windows. Deterministic. Without rollouts, no edits."""
        if not evidence.groups:
            return propose_nothing()
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
        return propose_rows(design, weigh_cells(weights, design, space), REASON, space)

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

    def state_dict(self) -> dict[str, Any]:
        """h, and what was counted since the last check; by stratum, where these have no order."""
        return {"tracks": {name: msgspec.to_builtins(track) for name, track in self.tracks.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """h, and what was counted since the last check."""
        if "hardest" in state:  # of a version that counted each stage by itself
            self.tracks = {"": Track(state["hardest"])}
        else:
            self.tracks = {
                name: convert(track, Track, "teacher state: tracks") for name, track in state["tracks"].items()
            }

    def _find_track(self, stratum: Stratum, space: DesignSpace) -> Track:
        return self.tracks.setdefault("" if space.ranked else str(stratum), Track())

    def _check_track(self, track: Track) -> None:
        if track.answers and track.prompts >= self.prompts:
            if track.valid / track.answers >= self.threshold:
                track.hardest = min(track.hardest + 1, self.levels - 1)
            track.prompts = track.answers = track.valid = 0
