"""The settings of a run: presets, overrides, and what each part may be set to."""

import hashlib
import tomllib
from importlib import resources
from typing import Annotated, Any, Literal

import msgspec

from core_jax.config import MAX_TOKEN_SIZE, EnvConfig
from core_jax.decoding import convert
from core_jax.errors import InputError
from core_jax.ranges import Count, HoleRatio, Natural, Share
from engineer.evidence import Modules
from engineer.guard import GuardSettings
from engineer.teachers.registry import TEACHERS
from experiments.launching import LaunchSettings
from policy.codecs.codec import CodecName, TextSettings
from policy.grpo import GrpoSettings
from policy.models import ModelName, ModelSettings
from policy.rewards import RewardSettings
from policy.warmup import WarmupSettings


class ValidationSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The held-out set: `boards` for each size x hole ratio x wait ratio; the same for every seed of a run."""

    hole_ratios: Annotated[tuple[HoleRatio, ...], msgspec.Meta(min_length=1)] = (0.1, 0.2, 0.3, 0.4)
    wait_ratios: Annotated[tuple[Share, ...], msgspec.Meta(min_length=1)] = (0.25, 0.5, 0.75)
    boards: Count = 20
    seed: Natural = 20260617


class RunSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything a run depends on.

    env: the boards of the first stage. warmup_env: the boards of the warm-up. horizon: the longest plan, in steps, that
    the policy may answer with. codec, text: what the policy speaks, and how it is asked if in words. start: the model
    to begin with, a folder or a name on the hub, instead of random weights. device: `cuda` refuses to run without one.
    launch: the processes that train.
    """

    env: EnvConfig
    warmup_env: EnvConfig
    seed: Natural = 0
    stages: Count = 3
    teacher: str = "self"
    horizon: Count = 16
    codec: CodecName = "tokens"
    text: TextSettings = TextSettings()
    start: str = ""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    launch: LaunchSettings = LaunchSettings()
    model: ModelSettings | ModelName = ModelSettings()
    warmup: WarmupSettings = WarmupSettings()
    grpo: GrpoSettings = GrpoSettings()
    reward: RewardSettings = RewardSettings()
    validation: ValidationSettings = ValidationSettings()
    modules: Modules = Modules()
    guard: GuardSettings = GuardSettings()

    def __post_init__(self) -> None:
        if self.teacher not in TEACHERS:
            raise ValueError(f"teacher is {self.teacher!r}; choose from {', '.join(TEACHERS)}")
        if large := [size for size in (*self.env.sizes, *self.warmup_env.sizes) if size > MAX_TOKEN_SIZE]:
            raise ValueError(f"env.sizes.{large[0]}: boards to train on are at most {MAX_TOKEN_SIZE}x{MAX_TOKEN_SIZE}")
        if self.codec == "text" and not self.start:
            raise ValueError("codec is text, but start names no model; give a folder or a name on the hub")
        if missing := [size for size in self.env.sizes if size not in self.warmup_env.sizes]:
            raise ValueError(f"warmup_env.sizes lacks {missing[0]}, which env.sizes has; add it")
        if self.guard.floor * len(self.env.sizes) > 1:
            raise ValueError(
                f"guard.floor is {self.guard.floor:g}, too much for {len(self.env.sizes)} sizes; "
                f"choose at most {1 / len(self.env.sizes):.3g}"
            )


def presets() -> list[str]:
    """The names of the presets that come with the package."""
    folder = resources.files("experiments") / "presets"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def load_settings(preset: str, overrides: list[str]) -> RunSettings:
    """A preset with overrides such as `grpo.steps=10`.

    Raises InputError naming the setting, its value and the remedy.
    """
    if preset not in presets():
        raise InputError(f"preset {preset!r} is unknown; choose from {', '.join(presets())}")
    text = (resources.files("experiments") / "presets" / f"{preset}.toml").read_text()
    raw = tomllib.loads(text)
    for override in overrides:
        _override(raw, override)
    return convert(raw, RunSettings, f"preset {preset}")


def seed_for(seed: int, purpose: str) -> int:
    """An independent 31-bit seed for each purpose of a run."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{purpose}".encode()).digest()[:4], "big") >> 1


def _override(raw: dict[str, Any], override: str) -> None:
    name, given, value = override.partition("=")
    if not given or not name:
        raise InputError(f"override {override!r}: write it as setting=value, such as grpo.steps=10")
    *path, last = name.split(".")
    for part in path:
        raw = raw.setdefault(part, {})
        if not isinstance(raw, dict):
            raise InputError(f"override {override!r}: {part} has no parts; name a setting such as grpo.steps")
    raw[last] = _value(value)


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
