"""The picture of sets of joint states, docs/images/joint-states.svg, of a small board that the solver labels.

python docs/site/joint_states.py
"""

from pathlib import Path

import numpy as np

from lakewright.core_jax.solver import solve
from lakewright.core_jax.types import Board

PICTURE = Path(__file__).parents[1] / "images" / "joint-states.svg"
ROWS, GOALS = ["...", "H.H", "HHH"], [(0, 2), (0, 0)]  # A goes to the right, B to the left; a siding in the middle
WITHIN = 3  # the set that is drawn: the states of a sum of costs of at most so many
CELL, GAP, TOP, LEFT = 44, 34, 66, 16
STYLE = """
  text { font-family: "DejaVu Sans", Verdana, sans-serif; font-size: 15px; fill: #1f2933; text-anchor: middle }
  .said { font-size: 14px; fill: #52606d; text-anchor: start }
  .hole { fill: #9fb3c8 } .free { fill: #ffffff } .set { fill: #bde3ec } .a { fill: #f7c9a9 }
  rect { stroke: #52606d }
"""


def label_states() -> dict[tuple[tuple[int, int], tuple[int, int]], tuple[int, bool]]:
    """For each pair of cells the optimal sum of costs, and whether a wait is forced."""
    holes = np.array([[letter == "H" for letter in row] for row in ROWS])
    free = [(row, column) for row in range(3) for column in range(3) if not holes[row, column]]
    pairs = [(a, b) for a in free for b in free if a != b]
    ends = np.broadcast_to(np.array(GOALS, np.int32), (len(pairs), 2, 2))
    labels = solve(Board(np.broadcast_to(holes, (len(pairs), 3, 3)), np.array(pairs, np.int32), ends))
    numbers = zip(np.asarray(labels.sum_of_costs).tolist(), np.asarray(labels.wait_required).tolist(), strict=True)
    return dict(zip(pairs, numbers, strict=True))


def draw() -> str:
    """A board for each cell of A, on which each cell of B has the cost of the state."""
    costs = label_states()
    parts = []
    for place, a in enumerate(sorted({a for a, _ in costs})):
        left = LEFT + place * (3 * CELL + GAP)
        parts.append(f'<text class="said" x="{left}" y="{TOP - 10}">A on row {a[0]}, column {a[1]}</text>')
        for row in range(3):
            for column in range(3):
                x, y = left + column * CELL, TOP + row * CELL
                cost, wait = costs.get((a, (row, column)), (None, False))
                kind = "a" if (row, column) == a else "hole" if ROWS[row][column] == "H" else "free"
                kind = "set" if cost is not None and cost <= WITHIN else kind
                said = "A" if kind == "a" else "" if cost is None else f"{cost}{'w' if wait else ''}"
                parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{CELL}" height="{CELL}"/>')
                parts.append(f'<text x="{x + CELL // 2}" y="{y + CELL // 2 + 5}">{said}</text>')
    width, height = 2 * LEFT + 4 * 3 * CELL + 3 * GAP, TOP + 3 * CELL + 16
    title = f"The sum of costs for each cell of B; w: a wait is forced; blue: the set R_{WITHIN}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    return "\n".join(
        [head, f"<style>{STYLE}</style>", f'<text class="said" x="{LEFT}" y="26">{title}</text>', *parts, "</svg>", ""]
    )


if __name__ == "__main__":
    PICTURE.write_text(draw())
