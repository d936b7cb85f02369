"""The static baseline: one config, whatever is seen. The best of a small search is the bar for every curriculum."""

import itertools
from typing import Annotated

import msgspec

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.support import HoleRatio, Share
from lakewright.engineer.delta import normalised
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.proposal import Proposal, Stateless, moved_to
from lakewright.engineer.random_generators import Key

REASON = "the static config"
Tilt = Annotated[float, msgspec.Meta(ge=-20, le=20)]  # beyond, all data are of one size


class StaticTeacher(Stateless):
    """Goes to one config and stays: `hole_ratio` and `wait_ratio` for all sizes, data in proportion to size ** `tilt`.

    A search trains once with the options of each of `designs()` and keeps the best by validation.
    """

    def __init__(self, hole_ratio: HoleRatio = 0.25, wait_ratio: Share = 0.5, tilt: Tilt = 0.0) -> None:
        self.hole_ratio = hole_ratio
        self.wait_ratio = wait_ratio
        self.tilt = tilt

    def propose(self, evidence: Evidence, config: EnvConfig, key: Key) -> Proposal:
        """The way to the static config; no chance in it."""
        sizes = {size: SizeConfig(size**self.tilt, self.hole_ratio, self.wait_ratio) for size in config.sizes}
        return moved_to(config, normalised(sizes), REASON)


def designs() -> list[dict[str, float]]:
    """The options of the search: hole ratio x wait ratio x data for all sizes alike or more for the large."""
    grid = itertools.product((0.1, 0.25, 0.4), (0.25, 0.5, 0.75), (0.0, 2.0))
    return [dict(zip(("hole_ratio", "wait_ratio", "tilt"), design, strict=True)) for design in grid]
