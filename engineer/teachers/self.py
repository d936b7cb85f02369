"""The policy itself as the teacher: the current checkpoint answers in tokens."""

from collections.abc import Callable, Sequence

import numpy as np

from core_jax.config import EnvConfig
from core_jax.errors import InputError
from engineer.evidence import Evidence
from engineer.teachers.base import Proposal, Stateless
from engineer.tokens import DeltaGrammar, evidence_tokens, tokens_delta

Allowed = Callable[[Sequence[str]], tuple[str, ...]]
Decode = Callable[[list[str], Allowed], list[str]]


class SelfTeacher(Stateless):
    """Asks `decode`, which maps prompt tokens and a function prefix -> allowed next tokens to answer tokens."""

    def __init__(self, decode: Decode) -> None:
        self.decode = decode

    def propose(self, evidence: Evidence, config: EnvConfig, key: np.random.Generator) -> Proposal:
        """The checkpoint's delta; whatever tokens come back, a proposal, with an error where they make no delta."""
        prompt = evidence_tokens(evidence)
        answer = self.decode(prompt, DeltaGrammar(config.sizes).allowed)
        # Whatever came back must go into a file: what is no text is spelled out.
        told = " ".join(prompt), " ".join(map(str, answer)).encode(errors="backslashreplace").decode()
        try:
            return Proposal(*told, delta=tokens_delta(answer), tokens=len(answer))
        except InputError as error:
            return Proposal(*told, delta=None, error=str(error), tokens=len(answer))
