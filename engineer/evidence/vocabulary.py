"""The words of the token form: sizes, buckets, steps and reasons."""

import math

from lakewright.core_jax.config import MAX_TOKEN_SIZE, MIN_SIZE
from lakewright.core_jax.terms import FAILURE_NAMES

SIZES = tuple(range(MIN_SIZE, MAX_TOKEN_SIZE + 1))
TOP_BUCKET = 10
UNKNOWN, GUIDED, PAST, NOW, DELTA, END = "<unknown>", "<guideline>", "<past>", "<now>", "<delta>", "<end>"
SUMMARY, ROLLOUTS, SAMPLED, CASE, REFUSED = "<summary>", "<rollouts>", "<sampled>", "<case>", "<refused>"
UNDONE, FORECAST = "<undone>", "<forecast>"

STEPS = {"data_ratio": 0.05, "hole_ratio": 0.05, "wait_ratio": 0.1}
STRIDES = (-2, -1, 1, 2)
FORECAST_HOLES = (0.1, 0.3)  # the hole ratios of which the forecast is told

TOO_EASY, TOO_HARD, FRONTIER = "<because_too_easy>", "<because_too_hard>", "<because_frontier>"
REASONS = {
    TOO_EASY: "so many plans are valid here that harder boards teach more",
    TOO_HARD: "nearly no plan is valid here, so these boards are too hard",
    FRONTIER: "some plans are valid and some are not, so this is the frontier of competence",
    **{f"<because_{name}>": f"too many plans fail here, most often by {name}" for name in FAILURE_NAMES[1:]},
}


def size_token(size: int) -> str:
    """The word of a map size."""
    return f"<size_{size}>"


def bucket_token(value: float, step: float = 1 / TOP_BUCKET) -> str:
    """The word of a non-negative value: its nearest multiple of `step`, at most the tenth."""
    return f"<q{min(TOP_BUCKET, math.floor(value / step + 0.5))}>"


def round_tokens(round: int, rounds: int) -> list[str]:
    """The two words of `round` of `rounds`, each at most ten."""
    return [f"<round_{min(TOP_BUCKET, round)}>", f"<of_{min(TOP_BUCKET, rounds)}>"]


def edit_token(field: str, stride: int) -> str:
    """The word of a change of `field` by `stride` steps, such as `<data+2>`."""
    return f"<{field.removesuffix('_ratio')}{stride:+d}>"


EDITS = {edit_token(field, stride): (field, stride * STEPS[field]) for field in STEPS for stride in STRIDES}

ENGINEER_TOKENS: tuple[str, ...] = (
    *(size_token(size) for size in SIZES),
    *(f"<{kind}{number}>" for kind in ("q", "round_", "of_") for number in range(TOP_BUCKET + 1)),
    *(UNKNOWN, GUIDED, PAST, NOW, DELTA, END),
    *(SUMMARY, ROLLOUTS, SAMPLED, CASE, REFUSED, UNDONE),
    *EDITS,
    *REASONS,
    FORECAST,
)
