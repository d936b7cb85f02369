"""The marks with which a language model begins and ends its thoughts: of its chat template, or the usual ones."""

import functools
from collections.abc import Sequence

from transformers import PreTrainedTokenizerFast

from lakewright.core_jax.support import (
    Marks,
    begins_thought,
    read_answer_after_thoughts,
    split_at_end_of_thought,
    strip_thoughts,
    write_end_of_thought,
)

THINK, THINK_ENDS = "<think>", "</think>"  # as which the marks of all templates are written
TAIL = 64  # tokens in which a mark may stand


class ThoughtMarks:
    """Reads thoughts of a model in token ids. own: the marks of its template, if that writes thoughts."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.tokenizer, self.own = tokenizer, find_marks(tokenizer)
        special = tokenizer.all_special_tokens
        self._are_special = any(strip_thoughts(f"{token}0", self.own) != f"{token}0" for token in special)

    def find_begun(self, prompt: Sequence[int]) -> str:
        """Return the mark of a thought with which a prompt ends; empty without one."""
        return begins_thought(str(self.tokenizer.decode(prompt[-TAIL:])).rstrip(), self.own)

    def read(self, said: Sequence[int]) -> str:
        """Return the text that a model said, its marks included."""
        text = str(self.tokenizer.decode(said, skip_special_tokens=not self._are_special))
        return functools.reduce(lambda left, token: left.replace(token, ""), self._list_ends(), text)

    def decode(self, said: Sequence[int]) -> str:
        """Return the text that a model said, with the marks of its template written as THINK and THINK_ENDS."""
        return self.rewrite(self.read(said))

    def rewrite(self, text: str) -> str:
        """Return a text with the marks of the template written as THINK and THINK_ENDS."""
        for begin, end in self.own:
            text = text.replace(begin, THINK).replace(end, THINK_ENDS)
        return text

    def has_ended(self, said: Sequence[int]) -> bool:
        """Return True if the last tokens end a thought."""
        return bool(split_at_end_of_thought(self.read(said[-TAIL:]), self.own)[1])

    def split(self, prompt: Sequence[int], said: Sequence[int]) -> tuple[str, str]:
        """Return the text before the end of a model's thought, and the mark that ends it; empty without a thought.

        Args:
            prompt: the prompt of the model.
            said: its answer so far. An unfinished thought gets the mark that ends thoughts of its kind.
        """
        text, end = split_at_end_of_thought(self.read(said), self.own)
        begun = read_answer_after_thoughts(text, self.own)[1] or self.find_begun(prompt)
        return text, end or (write_end_of_thought(begun, self.own) if begun else "")

    def _list_ends(self) -> list[str]:
        if not self._are_special:
            return []
        names = ("bos_token", "eos_token", "pad_token")
        return [token for name in names if (token := getattr(self.tokenizer, name, None))]


def find_marks(tokenizer: PreTrainedTokenizerFast) -> list[Marks]:
    """Return the words around thoughts in a chat template, if it writes thoughts of the model; else nothing."""
    if not tokenizer.chat_template:
        return []
    thought, said, asked = "a0thought", "what0was0said", [{"role": "user", "content": "?"}]
    prompt = str(tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True))
    for field in ("reasoning_content", "thinking", "reasoning"):
        turn = {"role": "assistant", "content": said, field: thought}
        try:
            text = str(tokenizer.apply_chat_template([*asked, turn], tokenize=False))
        except Exception:  # a template refuses what it likes
            continue
        before, _, after = text.partition(thought)
        between, separator, _ = after.partition(said)
        begin = before[len(prompt) :].strip() if before.startswith(prompt) else ""
        begin = begin or before.strip().rpartition("\n")[2]  # of a prompt that begins the thought itself
        if separator and begin and between.strip():
            return [(begin, between.strip())]
    return []
