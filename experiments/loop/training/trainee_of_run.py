"""The trainee of a run by its settings."""

from lakewright.experiments.loop.settings import RunSettings
from lakewright.experiments.loop.training.lake_trainee import LakeTrainee
from lakewright.experiments.loop.training.text_trainee import TextTrainee
from lakewright.experiments.loop.training.trainee import Trainee


def make_trainee(settings: RunSettings) -> Trainee:
    """The trainee. Raises InputError where the environment cannot be used."""
    return LakeTrainee(settings) if settings.environment == "lake" else TextTrainee(settings)
