"""Counts the answers of the reading test in this folder: of how many questions about each stratum a model says more.

`python docs/data/reading/worth/count_answers.py` prints a line for each model.
"""

import json
from collections import Counter
from pathlib import Path

ANSWERS = Path(__file__).with_name("answers.jsonl")


def main() -> None:
    """Prints the shares."""
    asked, more = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for line in ANSWERS.read_text().splitlines():
        found = json.loads(line)
        for place, odds in found["answer"]["odds"].items():
            asked[found["model"], place] += 1
            more[found["model"], place] += odds > 0
    for model in sorted({model for model, _ in asked}):
        places = sorted(place for known, place in asked if known == model)
        shares = [f"{place} {100 * more[model, place] / asked[model, place]:.0f} %" for place in places]
        print(f"{model}, says more of: {', '.join(shares)}")


if __name__ == "__main__":
    main()
