"""Counts the distinct questions of each kind among many: `python docs/data/studies/reasoning-gym/count.py`."""

from collections import Counter

from mixture import Mixture
from tqdm import tqdm

DRAWN = 50_000


def main() -> None:
    """Prints a line for each cell: distinct questions among DRAWN, and the share of the most frequent answer."""
    environment = Mixture()
    for cell in tqdm(environment.space.grid(environment.space.strata)):
        problems = environment.draw_cell(cell, DRAWN, seed=1)
        answer, count = Counter(problem.answer for problem in problems).most_common(1)[0]
        distinct = len({problem.prompt for problem in problems})
        tqdm.write(f"{cell}: {distinct} distinct of {DRAWN}; {answer} answers {100 * count / DRAWN:.1f} %")


if __name__ == "__main__":
    main()
