"""The baseline that never changes the config."""

from lakewright.core_jax.config import EnvConfig
from lakewright.engineer.delta import ConfigDelta
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.proposal import Proposal, Stateless, decided
from lakewright.engineer.random_generators import Key


class FixedTeacher(Stateless):
    """Proposes no edits: the paper's fixed config."""

    def propose(self, evidence: Evidence, config: EnvConfig, key: Key) -> Proposal:
        """A delta without edits."""
        return decided(ConfigDelta({}))
