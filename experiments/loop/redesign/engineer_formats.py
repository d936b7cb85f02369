"""Answers of a checkpoint that is trained as the engineer: in tokens of its codec, or in JSON under a mask."""

from collections.abc import Sequence
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.engineer.design import Design
from lakewright.engineer.evidence import DELTA, DeltaGrammar
from lakewright.engineer.proposal import AnswerTokens, Proposal
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.teachers import Allowed, answer_schema, map_columns
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.policy.inference import (
    AnswerWriter,
    SchemaSettings,
    grammar_of,
    sample_json_ids,
    sample_under_grammar,
    schema_grammar,
)

TEMPERATURE = 1.0  # that of the training on the answers: at another they are not the model's own


class TokenFormat:
    """Answers in tokens of the codec, under a grammar of deltas."""

    def __init__(self, settings: RunSettings, tokenizer: PreTrainedTokenizerFast, allowed: Allowed) -> None:
        self.settings, self.tokenizer, self.allowed = settings, tokenizer, allowed
        self.grammar = grammar_of(tokenizer, allowed)

    def read_proposal(self, proposal: Proposal) -> AnswerTokens:
        """The prompt and the answers of a proposal."""
        return AnswerTokens(proposal.prompt.split(), [line.split() for line in proposal.answer.split("\n")])

    def sample_answers(self, model: PreTrainedModel, prompt: Sequence[str], seed: int) -> list[list[str]]:
        """A group of answers."""
        return sample_under_grammar(
            model,
            self.tokenizer,
            prompt,
            self.allowed,
            copies=self.settings.engineer.group,
            temperature=TEMPERATURE,
            seed=seed,
        )

    def decode_answers(self, answers: Sequence[Sequence[str]]) -> list[str]:
        """Returns nothing, because tokens are not text."""
        return []


class JsonFormat:
    """Answers of a language model in JSON of a schema, without reasoning before it."""

    def __init__(self, settings: RunSettings, tokenizer: PreTrainedTokenizerFast, schema: dict[str, Any]) -> None:
        self.settings, self.tokenizer, self.schema = settings, tokenizer, schema
        self.grammar = schema_grammar(tokenizer, schema)

    def read_proposal(self, proposal: Proposal) -> AnswerTokens:
        """The prompt and the answers of a proposal."""
        assert proposal.spoken, "a proposal of SelfTrainedLlmTeacher"
        return proposal.spoken

    def sample_answers(
        self, policy: PreTrainedModel | AnswerWriter, prompt: Sequence[str], seed: int
    ) -> list[list[str]]:
        """A group of answers."""
        chosen, ids = self.settings.engineer, self.tokenizer.convert_tokens_to_ids(list(prompt))
        sampling = SchemaSettings(reasoning=0, answer=chosen.answer, temperature=TEMPERATURE)
        answers = sample_json_ids(policy, self.tokenizer, ids, self.schema, sampling, chosen.group, seed)
        return [self.tokenizer.convert_ids_to_tokens(answer) for answer in answers]

    def decode_answers(self, answers: Sequence[Sequence[str]]) -> list[str]:
        """The answers as text."""
        ids = (self.tokenizer.convert_tokens_to_ids(list(answer)) for answer in answers)
        return [str(self.tokenizer.decode(answer, skip_special_tokens=True)) for answer in ids]


EngineerFormat = TokenFormat | JsonFormat


def answers_in_tokens(tokenizer: PreTrainedTokenizerFast) -> bool:
    """Whether a model's vocabulary has the engineer's words; else it is a language model."""
    return DELTA in tokenizer.get_vocab()


def make_format(
    settings: RunSettings, tokenizer: PreTrainedTokenizerFast, design: Design, space: DesignSpace
) -> EngineerFormat:
    """The form in which a checkpoint answers when asked for a change of `design`.

    Args:
        settings: the run's settings.
        tokenizer: the checkpoint's tokenizer.
        space: the design space, which says what may be changed.
    """
    if answers_in_tokens(tokenizer):
        return TokenFormat(settings, tokenizer, DeltaGrammar(space, design.strata).allowed)
    summary = settings.evidence.chosen().self_summary
    strata, columns = space.sort_strata(design.strata), map_columns(design, space)
    schema = answer_schema(strata, space, inline=False, summary=summary, columns=columns)
    return JsonFormat(settings, tokenizer, schema)
