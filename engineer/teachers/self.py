"""The policy itself as the teacher: the current checkpoint answers in tokens."""

from collections.abc import Callable, Sequence

from lakewright.core_jax.errors import InputError
from lakewright.engineer.design import Design
from lakewright.engineer.evidence import (
    DeltaGrammar,
    Evidence,
    EvidenceSettings,
    evidence_tokens,
    fit_to_budget,
    read_tokens,
    show,
)
from lakewright.engineer.proposal import Proposal, Stateless
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace

Allowed = Callable[[Sequence[str]], tuple[str, ...]]
Decode = Callable[[list[str], Allowed], list[str]]


class SelfTeacher(Stateless):
    """Asks `decode`, which maps prompt tokens and a function prefix -> allowed next tokens to answer tokens.

    It is shown what `settings` switch on; its own answer is its summary of the round.
    """

    def __init__(self, decode: Decode, settings: EvidenceSettings) -> None:
        self.decode = decode
        self.settings = settings

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The checkpoint's delta; whatever tokens come back, a proposal, with an error where they make no delta."""
        view = show(evidence, self.settings.chosen(), key)
        view, cut = fit_to_budget(view, self.settings.budget, lambda view: len(evidence_tokens(view, space)))
        prompt = evidence_tokens(view, space)
        answer = self.decode(prompt, DeltaGrammar(space, design.strata).allowed)
        # Whatever came back must go into a file: what is not text is written as escapes.
        text = " ".join(map(str, answer)).encode(errors="backslashreplace").decode()
        try:
            delta, error = read_tokens(answer, space), ""
        except InputError as problem:
            delta, error = None, str(problem)
        return Proposal(" ".join(prompt), text, delta, error, summary=text, cut=cut, tokens=len(answer))
