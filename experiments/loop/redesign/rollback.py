"""Whether a stage is rolled back: its policy is compared, problem by problem, with the one that it was trained from."""

from lakewright.engineer.design import Design
from lakewright.engineer.steps import compare_answers
from lakewright.experiments.loop.records import Rollback, RunFolder, Stage, Validation, read
from lakewright.experiments.loop.settings import RunSettings


def compare(settings: RunSettings, folder: RunFolder, number: int) -> Rollback:
    """The verdict on stage `number`: rolled back where its policy lost problems beyond what chance explains."""
    stage, before = folder.stage(number), folder.standing(number - 1)
    comparison = compare_answers(*(_valid(part) for part in (before, stage)))
    back = comparison.p_value < settings.rollback.level
    weights = before if back and settings.rollback.weights else stage
    return Rollback(before.folder.name, comparison, back, weights.folder.name)


def find_return(folder: RunFolder, number: int) -> Design | None:
    """The earlier design that the run returns to after stage `number`; None where the teacher is asked instead.

    The teacher is asked after a stage that stands, and after one that has no other design to return to, such as the
    first: retraining on its own design would fail the same way.
    """
    stage = folder.stage(number)
    if not (rollback := stage.rolled_back()):
        return None
    before = design_before(folder, number, rollback)
    return before if before != stage.design() else None


def design_before(folder: RunFolder, number: int, rollback: Rollback) -> Design:
    """The design that a stage which is rolled back gives way to; the first, which has none before it, keeps its own.

    Where weights stay, a stage may be trained from one that was rolled back itself: its design is not returned to.
    """
    before = folder.named(rollback.against)
    while before.env.exists() and (earlier := before.rolled_back()):
        before = folder.named(earlier.against)
    return (before if before.env.exists() else folder.stage(number)).design()


def _valid(stage: Stage) -> list[bool]:
    return [digit == "1" for digit in read(stage.validation, Validation).valid]
