"""The static baseline: one config, whatever is seen. The best of a small search is the bar for every curriculum."""

import itertools

import jax

from core_jax.config import MAX_HOLE_RATIO, EnvConfig, SizeConfig
from engineer.curriculum_cells import moved_to
from engineer.delta import normalised
from engineer.evidence import Evidence
from engineer.options import check_range
from engineer.proposal import Proposal, Stateless

REASON = "the static config"
MAX_TILT = 20.0  # beyond, all data are of one size


class StaticTeacher(Stateless):
    """Goes to one config and stays: `hole_ratio` and `wait_ratio` for all sizes, data in proportion to size ** `tilt`.

    A search trains once with the options of each of `designs()` and keeps the best by validation.
    """

    def __init__(self, hole_ratio: float = 0.25, wait_ratio: float = 0.5, tilt: float = 0.0) -> None:
        check_range("hole_ratio", hole_ratio, 0, MAX_HOLE_RATIO)
        check_range("wait_ratio", wait_ratio, 0, 1)
        check_range("tilt", tilt, -MAX_TILT, MAX_TILT)
        self.hole_ratio = hole_ratio
        self.wait_ratio = wait_ratio
        self.tilt = tilt

    def propose(self, evidence: Evidence, config: EnvConfig, key: jax.Array) -> Proposal:
        """The way to the static config; no chance in it."""
        sizes = {size: SizeConfig(size**self.tilt, self.hole_ratio, self.wait_ratio) for size in config.sizes}
        return moved_to(config, normalised(sizes), REASON)


def designs() -> list[dict[str, float]]:
    """The options of the search: hole ratio x wait ratio x data for all sizes alike or more for the large."""
    grid = itertools.product((0.1, 0.25, 0.4), (0.25, 0.5, 0.75), (0.0, 2.0))
    return [dict(zip(("hole_ratio", "wait_ratio", "tilt"), design, strict=True)) for design in grid]
