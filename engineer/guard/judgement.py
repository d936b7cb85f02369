"""The judgement of a proposal: what of it is applied, and why not all."""

import math
from collections.abc import Callable
from typing import Literal

import msgspec

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import can_draw
from lakewright.engineer.delta import FIELDS, ConfigDelta, edited, normalised
from lakewright.engineer.guard.projection import projected
from lakewright.engineer.guard.settings import GuardSettings

Reachable = Callable[[int, int, float, bool], bool]
"""Whether boards of (size, agents, hole ratio, forced wait) can be drawn; `core_jax.generator.can_draw` by default."""

NOISE = 1e-3  # EnvConfig's own tolerance on the sum of the data ratios


class GuardVerdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The verdict on a proposal: `config` is what to train on next, `reasons` say where it is not what was proposed."""

    status: Literal["accepted", "projected", "refused"]
    reasons: list[str]
    config: EnvConfig

    def summary(self) -> str:
        """The verdict in a line."""
        return f"{self.status}: {'; '.join(self.reasons)}" if self.reasons else self.status


def judge(
    config: EnvConfig, delta: ConfigDelta, settings: GuardSettings, reachable: Reachable = can_draw
) -> GuardVerdict:
    """Applies `delta` to `config` and projects the sum onto the legal region within reach of `config`.

    The legal region, for data ratios d, hole ratios h and wait ratios w of m sizes:
        d_s >= floor,  sum_s d_s = 1,  0 <= h_s <= max_hole_ratio,  0 <= w_s <= max_wait_ratio.
    The trust region: abs(d'_s - d_s) <= max_data_change, and likewise for h and w.

    Data: with r = clip(d + change, 0, 1) and excess e_s = max(r_s - floor, 0), the goal is
        P(r)_s = floor + (1 - m floor) e_s / sum(e)            (equal shares where no size has an excess),
    and d' = d + t (P(r) - d), with the largest t <= 1 inside the trust region: sum and floor hold along the whole line.
    A `config` below the floor is first moved along the line to P(d), then toward P(r), as far as the trust region of d
    reaches; where that ends short of the floor, the next round's non-empty delta continues.
    Hole and wait: clip to the limits, then to the trust region around the current value.

    Strata: where a size's boards, with a forced wait or without, cannot be drawn, its wait ratio stays as it was, else
    its hole ratio, else both; where not even that helps, the proposal is refused. The config is on the grid of six
    decimals.

    A ratio within 0.001 of what was proposed counts as accepted. A delta without edits keeps `config` as it is. An
    unknown size or a number that is not finite is refused, and `config` kept. Raises InputError only where `settings`
    do not suit `config` (floor x sizes > 1).
    """
    _check_floor(settings.floor, len(config.sizes))
    if not delta.edits:
        return GuardVerdict("accepted", [], config)
    try:
        _check_finite(delta)
        proposed = edited(config, delta)
    except InputError as error:
        return GuardVerdict("refused", [str(error)], config)
    applied = normalised(projected(config.sizes, proposed, settings))
    try:
        applied, missing = _drawable(config, applied, reachable)
    except InputError as error:
        return GuardVerdict("refused", [str(error)], config)
    reasons = _differences(proposed, applied) + missing
    return GuardVerdict("projected" if reasons else "accepted", reasons, config.replace(applied))


def _check_floor(floor: float, sizes: int) -> None:
    if floor * sizes > 1 + 1e-9:
        raise InputError(f"guard: floor {floor:g} x {sizes} sizes is more than 1; choose at most {1 / sizes:.3g}")


def _check_finite(delta: ConfigDelta) -> None:
    for size, edit in delta.edits.items():
        for field in FIELDS:
            if not math.isfinite(getattr(edit, field)):
                raise InputError(f"edits.{size}.{field}: {getattr(edit, field)} is not finite; give a number")


def _drawable(
    config: EnvConfig, applied: dict[int, SizeConfig], reachable: Reachable
) -> tuple[dict[int, SizeConfig], list[str]]:
    """The sizes with what cannot be drawn taken back, and a line for each."""
    drawable, missing = {}, []
    for size, new in applied.items():
        old = config.sizes[size]
        ways = [(h, w) for h in (new.hole_ratio, old.hole_ratio) for w in (new.wait_ratio, old.wait_ratio)]
        cells = [SizeConfig(new.data_ratio, *way) for way in ways]
        found = next((cell for cell in cells if _exists(size, config.agents, cell, reachable)), None)
        asked = f"hole_ratio {new.hole_ratio:.3g} and wait_ratio {new.wait_ratio:.3g}"
        if found is None:
            raise InputError(f"sizes.{size}: no boards with {asked} can be drawn; change hole_ratio or wait_ratio")
        if found != new:
            missing.append(f"sizes.{size}: no boards with {asked} can be drawn")
        drawable[size] = found
    return drawable, missing


def _exists(size: int, agents: int, cell: SizeConfig, reachable: Reachable) -> bool:
    strata = [wait for wait, share in cell.wait_shares if share]
    return not cell.data_ratio or all(reachable(size, agents, cell.hole_ratio, wait) for wait in strata)


def _differences(proposed: dict[int, SizeConfig], applied: dict[int, SizeConfig]) -> list[str]:
    pairs = [(f"sizes.{s}.{f}", getattr(proposed[s], f), getattr(applied[s], f)) for s in proposed for f in FIELDS]
    return [f"{name}: proposed {old:.3g}, applied {new:.3g}" for name, old, new in pairs if abs(old - new) > NOISE]
