"""Builds a small benchmark in the folder that is given, and stays for ever in its second cell."""

import sys
import threading
from pathlib import Path

from experiments.benchmark import TIERS, build, builder
from experiments.benchmark.tiers import Tier

SMALL = Tier(teams=((2, 3), (2, 5)), hole_ratios=(0.1, 0.5), wait_ratios=(0.25, 0.75), boards=6)

if __name__ == "__main__":
    TIERS["small"] = SMALL
    draw, begun = builder.draw_cell, []

    def draw_one(*given):
        begun.append(given)
        if len(begun) > 1:
            threading.Event().wait()
        return draw(*given)

    builder.draw_cell = draw_one
    build(Path(sys.argv[1]), "small", 0)
