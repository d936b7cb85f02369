"""The control that edits by chance: it separates the choice of an edit from the change itself."""

import numpy as np

from core_jax.config import EnvConfig, SizeConfig
from engineer.delta import ConfigDelta, SizeEdit
from engineer.evidence import Evidence
from engineer.teachers.base import Proposal, Stateless, decided
from engineer.teachers.steps import fits
from engineer.vocabulary import STEPS, STRIDES

REASON = "drawn at random"


class RandomTeacher(Stateless):
    """Edits a uniform number of sizes, each in one to three ratios, by steps that stay inside their ranges."""

    def propose(self, evidence: Evidence, config: EnvConfig, key: np.random.Generator) -> Proposal:
        """Random edits of 1 to all sizes of `config`."""
        sizes = list(config.sizes)
        chosen = key.permutation(sizes)[: key.integers(1, len(sizes) + 1)]
        return decided(ConfigDelta({size: _edit(config.sizes[size], key) for size in sorted(chosen.tolist())}))


def _edit(cell: SizeConfig, key: np.random.Generator) -> SizeEdit:
    fields = key.permutation(list(STEPS))[: key.integers(1, len(STEPS) + 1)].tolist()
    return SizeEdit(**{field: _stride(cell, field, key) * STEPS[field] for field in fields}, reason=REASON)


def _stride(cell: SizeConfig, field: str, key: np.random.Generator) -> int:
    return int(key.choice([stride for stride in STRIDES if fits(cell, field, stride)]))
