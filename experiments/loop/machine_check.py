"""What a run needs of the machine, checked before the work begins rather than after a warm-up."""

from pathlib import Path

from lakewright.experiments.loop.redesign import check_askable
from lakewright.experiments.loop.settings import RunSettings
from lakewright.policy.codecs import build_tokenizer
from lakewright.policy.models import check_device, check_folder, check_shape, resolve_place
from lakewright.policy.training import check_host


def check_machine(settings: RunSettings) -> None:
    """Raises InputError where a device, a package, the key of a server or memory is missing, or a start is no model."""
    check_device(settings.device)
    check_host(settings.grpo.host)
    check_askable(settings)
    if not settings.start:
        check_shape(settings.model, build_tokenizer())
    elif (folder := Path(resolve_place(settings.start))).is_dir():
        check_folder(folder)
