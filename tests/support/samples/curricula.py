"""What teachers are asked, and what they ask for."""

import jax

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.results import BoardOutcomes
from lakewright.engineer.delta import edit_design
from lakewright.engineer.evidence import CellGroups
from lakewright.engineer.proposal import Proposal, Teacher
from lakewright.engineer.teachers import Tools, make_teacher
from lakewright.experiments.environments.lake import lake_space
from tests.support.samples.evidence import decode_first, design, everything, sample_first

CONFIG = EnvConfig({3: SizeConfig(0.5, 0.25, 0.5), 4: SizeConfig(0.25, 0.25, 0.5), 6: SizeConfig(0.25, 0.25, 0.5)})


def made(name: str) -> Teacher:
    """A teacher by name, with a policy that takes the first token that is allowed."""
    return make_teacher(name, Tools(decode=decode_first, sample=sample_first))


def propose(
    teacher: Teacher,
    groups: list[CellGroups] | None = None,
    valid: dict[int, int] | None = None,
    config: EnvConfig = CONFIG,
    seed: int = 0,
    round: int = 0,
) -> Proposal:
    """What a teacher proposes on groups of rollouts and counts of valid plans, of 100, by size."""
    seen = {size: BoardOutcomes(100, count, 0, 0, {}, 0, 0) for size, count in (valid or {}).items()}
    evidence = everything(config, seen, round=round, groups=groups or [])
    space = lake_space(several=config.agents > 1)
    return teacher.propose(evidence, design(config), space, jax.random.key(seed))


def asked_for(proposal: Proposal, config: EnvConfig = CONFIG) -> dict[int, SizeConfig]:
    """The sizes that a proposal asks for."""
    assert proposal.delta is not None, proposal.error
    rows = edit_design(design(config), proposal.delta, lake_space(several=config.agents > 1))
    return {int(size): SizeConfig(**row) for size, row in rows.items()}


def shares(sizes: dict[int, SizeConfig]) -> list[float]:
    """The data ratios, by rising size."""
    return [sizes[size].data_ratio for size in sorted(sizes)]
