"""Published scores on the authors' boards: valid and optimal %, means over sizes (arXiv 2606.17682)."""

from typing import NamedTuple

SIZES = {3: list(range(3, 11)), 4: list(range(4, 11)), 5: list(range(5, 11))}  # of each number of agents


class PublishedScore(NamedTuple):
    """A published row: valid and optimal % by number of agents."""

    who: str
    valid: dict[int, float]
    optimal: dict[int, float]


def _read_score(who: str, *pairs: tuple[float, float]) -> PublishedScore:
    valid, optimal = ({agents: pair[of] for agents, pair in zip(SIZES, pairs, strict=True)} for of in (0, 1))
    return PublishedScore(who, valid, optimal)


PUBLISHED = (
    _read_score("GPT-5.4", (32.50, 20.58), (17.05, 10.86), (9.11, 6.00)),
    _read_score("Grok-4.2", (33.42, 21.00), (23.43, 15.33), (12.89, 8.78)),
    _read_score("Gemini-3.1-Pro", (24.50, 15.33), (12.95, 10.10), (4.78, 3.56)),
    _read_score("Kimi-K2.5", (46.17, 29.25), (26.95, 17.90), (13.47, 8.78)),
    _read_score("Qwen3-4B", (14.83, 14.00), (3.43, 3.05), (1.44, 1.22)),
    _read_score("Qwen3-4B + GRPO, fixed config", (40.42, 26.08), (26.67, 16.10), (15.11, 9.11)),
    _read_score("Qwen3-4B + GRPO, engineer: base", (45.21, 30.00), (27.62, 19.62), (16.00, 10.89)),
    _read_score("Qwen3-4B + GRPO, engineer: itself", (51.67, 31.67), (33.14, 21.33), (18.67, 11.00)),
)
