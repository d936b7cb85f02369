"""The saboteur, a test of the defences: it always asks for the boards from which least can be learned."""

from lakewright.core_jax.config import MAX_HOLE_RATIO, EnvConfig, SizeConfig
from lakewright.engineer.delta import normalised
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.proposal import Proposal, Stateless, moved_to
from lakewright.engineer.random_generators import Key

REASON = "the worst config"


class SaboteurTeacher(Stateless):
    """All data to the size whose valid rate v has the least v (1 - v), the largest of several; and every size as hard
    as can be where v < 1/2 or is unknown (holes 0.5, all waits forced), else as easy as can be (no holes, no waits).

    What of it is legal is the guard's to say.
    """

    def propose(self, evidence: Evidence, config: EnvConfig, key: Key) -> Proposal:
        """The worst config; no chance in it."""
        rates = {size: seen.rate(seen.valid) for size, seen in evidence.outcomes.items()}
        valid = {size: rates.get(size, 0.0) for size in config.sizes}
        worst = min(config.sizes, key=lambda size: (valid[size] * (1 - valid[size]), -size))
        waits = float(config.agents > 1)
        sizes = {
            size: SizeConfig(float(size == worst), *((MAX_HOLE_RATIO, waits) if valid[size] < 0.5 else (0.0, 0.0)))
            for size in config.sizes
        }
        return moved_to(config, normalised(sizes), REASON)
