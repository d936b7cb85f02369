"""Whether a stage is taken back: its policy is compared, board by board, with the one that it was trained from."""

from lakewright.core_jax.config import EnvConfig
from lakewright.engineer.rollback import compared
from lakewright.experiments.loop.records import Rollback, RunFolder, Stage, Validation, read
from lakewright.experiments.loop.settings import RunSettings


def compare(settings: RunSettings, folder: RunFolder, number: int) -> Rollback:
    """The verdict on stage `number`: taken back where its policy lost boards beyond what chance explains."""
    stage, before = folder.stage(number), folder.standing(number - 1)
    comparison = compared(*(_valid(part) for part in (before, stage)))
    back = comparison.p_value < settings.rollback.level
    weights = before if back and settings.rollback.weights else stage
    return Rollback(before.folder.name, comparison, back, weights.folder.name)


def gone_back_to(folder: RunFolder, number: int) -> EnvConfig | None:
    """The earlier config that the run returns to after stage `number`; None where the teacher is asked instead.

    The teacher is asked after a stage that was kept, and after one that has no other config to return to, such as the
    first: its own config would do the same harm again.
    """
    stage = folder.stage(number)
    if not (rollback := stage.taken_back()):
        return None
    before = config_before(folder, number, rollback)
    return before if before != stage.config() else None


def config_before(folder: RunFolder, number: int, rollback: Rollback) -> EnvConfig:
    """The config that a stage which is taken back gives way to; the first, which has none before it, keeps its own.

    Where weights stay, a stage may be trained from one that was taken back itself: its config is not gone back to.
    """
    before = folder.named(rollback.against)
    while before.env.exists() and (earlier := before.taken_back()):
        before = folder.named(earlier.against)
    return (before if before.env.exists() else folder.stage(number)).config()


def _valid(stage: Stage) -> list[bool]:
    return [digit == "1" for digit in read(stage.validation, Validation).valid]
