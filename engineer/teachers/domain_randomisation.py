"""Domain randomisation: the config is drawn again for every stage."""

from lakewright.core_jax.config import MAX_HOLE_RATIO, EnvConfig, SizeConfig
from lakewright.engineer.delta import normalised
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.proposal import Proposal, Stateless, moved_to
from lakewright.engineer.random_generators import Key, numpy_rng

REASON = "drawn uniformly from the box"


class DomainRandomisationTeacher(Stateless):
    """theta ~ U(box) (Tobin et al. 2017, arXiv 1703.06907): hole ratios ~ U(0, 0.5), wait ratios ~ U(0, 1), and data
    ratios uniform on the simplex. The sampler of the same name draws theta for every few boards instead.
    """

    def propose(self, evidence: Evidence, config: EnvConfig, key: Key) -> Proposal:
        """The way to a config drawn by chance alone."""
        rng = numpy_rng(key)
        data = rng.dirichlet([1.0] * len(config.sizes)).tolist()
        sizes = {
            size: SizeConfig(share, float(rng.uniform(0, MAX_HOLE_RATIO)), float(rng.uniform()))
            for size, share in zip(sorted(config.sizes), data, strict=True)
        }
        return moved_to(config, normalised({size: sizes[size] for size in config.sizes}), REASON)
