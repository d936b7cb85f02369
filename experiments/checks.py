"""What a run needs of its surroundings, told before the work begins rather than after a warm-up."""

from experiments.asking import check_askable
from experiments.settings import RunSettings
from policy.hosts import check_host
from policy.models import check_device


def check_machine(settings: RunSettings) -> None:
    """Raises InputError where a device, a package or the key of a server is missing."""
    check_device(settings.device)
    check_host(settings.grpo.host)
    check_askable(settings)
