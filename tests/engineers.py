"""Evidence that several tests of the engineer share."""

from typing import Any

import jax

from core_jax.config import EnvConfig
from core_jax.outcomes import Outcomes
from engineer.evidence import Evidence, Round, shown
from engineer.modules import Modules

V6 = Modules()


def everything(
    config: EnvConfig, outcomes: dict[int, Outcomes], past: list[Round] | None = None, round: int = 0, **facts: Any
) -> Evidence:
    """All that is known after a round of `rounds`, by default 3."""
    return Evidence(config=config, outcomes=outcomes, history=past or [], round=round, **{"rounds": 3, **facts})


def view(modules: Modules, *arguments: Any, **facts: Any) -> Evidence:
    """What the modules show of `everything`."""
    return shown(everything(*arguments, **facts), modules, jax.random.key(0))
