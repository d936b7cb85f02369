"""What the study of the trainee is asked for, and what it finds."""

import msgspec

from lakewright.core_jax.results import Outcomes
from lakewright.core_jax.support import Count, Positive
from lakewright.experiments.loop.settings import RunSettings

ARMS = {"warmup": "warm-up", "sft": "warm-up, then SFT", "grpo": "warm-up, then GRPO"}
FORMAT = 2  # 1 had natural boards of its own drawing


class StudySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of the runs, and how much is measured. boards: of a kind, for each size and hole ratio.

    sft_rate: the rates of continued supervised learning, as a share of those of the warm-up.
    """

    run: RunSettings
    seeds: Count
    boards: Count
    sft_rate: Positive
    format: int = FORMAT


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The results of an arm: seconds of training, steps, seconds of waiting for boards, outcomes by kind and size."""

    seconds: float
    steps: int
    waited: float
    outcomes: dict[str, dict[int, Outcomes]]


class Result(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """result.json: the parts by seed and arm, and for each arm and figure the mean and its standard deviation."""

    settings: StudySettings
    parts: dict[int, dict[str, Part]]
    summary: dict[str, dict[str, tuple[float, float]]]
