"""What a run needs of the machine, checked before the work begins rather than after a warm-up."""

from experiments.loop.redesign import check_askable
from experiments.loop.settings import RunSettings
from policy.checkpoints import check_device
from policy.training import check_host


def check_machine(settings: RunSettings) -> None:
    """Raises InputError where a device, a package or the key of a server is missing."""
    check_device(settings.device)
    check_host(settings.grpo.host)
    check_askable(settings)
