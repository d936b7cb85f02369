"""The baseline that never changes the config."""

from core_jax.config import EnvConfig
from engineer.delta import ConfigDelta
from engineer.evidence import Evidence
from engineer.proposal import Proposal, Stateless, decided
from engineer.random_generators import Key


class FixedTeacher(Stateless):
    """Proposes no edits: the paper's fixed config."""

    def propose(self, evidence: Evidence, config: EnvConfig, key: Key) -> Proposal:
        """A delta without edits."""
        return decided(ConfigDelta({}))
