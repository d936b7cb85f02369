"""The control that edits by chance: it separates the choice of an edit from the change itself."""

import numpy as np

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.engineer.delta import ConfigDelta, SizeEdit
from lakewright.engineer.evidence import STEPS, STRIDES, Evidence
from lakewright.engineer.proposal import Proposal, Stateless, decided
from lakewright.engineer.random_generators import Key, numpy_rng
from lakewright.engineer.teachers.step_edits import fits

REASON = "drawn at random"


class RandomTeacher(Stateless):
    """Edits a uniform number of sizes, each in one to three ratios, by steps that stay inside their ranges."""

    def propose(self, evidence: Evidence, config: EnvConfig, key: Key) -> Proposal:
        """Random edits of 1 to all sizes of `config`."""
        sizes, rng = list(config.sizes), numpy_rng(key)
        chosen = rng.permutation(sizes)[: rng.integers(1, len(sizes) + 1)]
        return decided(ConfigDelta({size: _edit(config.sizes[size], rng) for size in sorted(chosen.tolist())}))


def _edit(cell: SizeConfig, rng: np.random.Generator) -> SizeEdit:
    fields = rng.permutation(list(STEPS))[: rng.integers(1, len(STEPS) + 1)].tolist()
    return SizeEdit(**{field: _stride(cell, field, rng) * STEPS[field] for field in fields}, reason=REASON)


def _stride(cell: SizeConfig, field: str, rng: np.random.Generator) -> int:
    return int(rng.choice([stride for stride in STRIDES if fits(cell, field, stride)]))
