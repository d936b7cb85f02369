"""The samplers by name."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import Count, one_of
from lakewright.engineer.options import checked_options
from lakewright.engineer.samplers.base import Sampler
from lakewright.engineer.samplers.dapo import DapoSampler
from lakewright.engineer.samplers.domain_randomisation import DomainRandomisationSampler
from lakewright.engineer.samplers.fresh import FreshSampler
from lakewright.engineer.samplers.pcl import PclSampler
from lakewright.engineer.samplers.plr import PlrSampler
from lakewright.engineer.samplers.sfl import SflSampler
from lakewright.engineer.samplers.vcrl import VcrlSampler

SAMPLERS: dict[str, Callable[..., Sampler]] = {
    "fresh": FreshSampler,
    "domain_randomisation": DomainRandomisationSampler,
    "sfl": SflSampler,
    "plr": PlrSampler,
    "dapo": DapoSampler,
    "vcrl": VcrlSampler,
    "pcl": PclSampler,
}


class SamplerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which sampler chooses the boards of a stage, and how."""

    name: Annotated[str, one_of(SAMPLERS)] = "fresh"
    """How the boards of a stage are chosen."""
    options: dict[str, Any] = {}
    """Options of the sampler: keyword arguments of its class."""
    plans: Count = 4
    """Plans sampled on a board to score it, for samplers that score boards."""

    def __post_init__(self) -> None:
        make_sampler(self.name, self.options)


def make_sampler(name: str, options: Mapping[str, Any]) -> Sampler:
    """The sampler of that name. Raises InputError on an unknown name or option, or a value outside its range."""
    if name not in SAMPLERS:
        raise InputError(f"{name!r:.60} is no sampler; choose from {', '.join(SAMPLERS)}")
    return SAMPLERS[name](**checked_options("options", name, SAMPLERS[name], options))
