"""The samplers by name."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from lakewright.core_jax.support import Count, one_of
from lakewright.engineer.plugins import check_options, load_class
from lakewright.engineer.samplers.base import Sampler

ROOM = "lakewright.engineer.samplers"
SAMPLERS = {
    "fresh": f"{ROOM}.base:FreshSampler",
    "domain_randomisation": f"{ROOM}.domain_randomisation:DomainRandomisationSampler",
    "sfl": f"{ROOM}.filtering:SflSampler",
    "plr": f"{ROOM}.replaying:PlrSampler",
    "dapo": f"{ROOM}.filtering:DapoSampler",
    "vcrl": f"{ROOM}.replaying:VcrlSampler",
    "pcl": f"{ROOM}.pcl:PclSampler",
    "signal": f"{ROOM}.keeping_shares:SignalSampler",
    "redraw": f"{ROOM}.keeping_shares:RedrawSampler",
}
"""A new sampler is a file and a line here; other samplers are named `module:Class` or `FILE.py:Class`."""
METHODS = ("draw", "learn", "state_dict", "load_state_dict")


class SamplerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the sampler that chooses the problems of a stage."""

    name: Annotated[str, one_of(SAMPLERS)] = "fresh"
    """How the problems of a stage are chosen."""
    options: dict[str, Any] = {}
    """Options of the sampler: keyword arguments of its class."""
    plans: Count = 4
    """Answers sampled to a problem to score it, for samplers that score problems."""

    def __post_init__(self) -> None:
        make_sampler(self.name, self.options)


def make_sampler(name: str, options: Mapping[str, Any]) -> Sampler:
    """The sampler of that name. Raises InputError on an unknown name or option, or a value outside its range."""
    kind = load_class(name, SAMPLERS, "sampler", METHODS)
    return kind(**check_options("options", name, kind, options))
