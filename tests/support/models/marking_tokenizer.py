"""Tokenizers whose chat template writes the thoughts of a model between marks of its own."""

from copy import deepcopy

from transformers import PreTrainedTokenizerFast

from tests.support.models.small_language_model import language

THOUGHTFUL = (
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}{%- if message.reasoning_content %}"
    "{{- 'BEGIN' + message.reasoning_content + 'END' }}{%- endif %}{{- message.content + '<|im_end|>\\n' }}"
    "{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\nPROMPT' }}{%- endif %}"
)
MARKS = {
    "of its own": ("<muse>", "</muse>", ()),
    "special tokens": ("[THINK]", "[/THINK]", ("[THINK]", "[/THINK]")),
    "channels": (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
        ("<|channel|>", "<|message|>", "<|end|>", "<|start|>"),
    ),
}


def marking_tokenizer(begin: str, end: str, special: tuple[str, ...], prompt: str = "") -> PreTrainedTokenizerFast:
    """One whose template writes thoughts between two marks, some of them special tokens."""
    tokenizer = deepcopy(language())
    tokenizer.add_special_tokens({"additional_special_tokens": list(special)})
    tokenizer.chat_template = THOUGHTFUL.replace("BEGIN", begin).replace("END", end).replace("PROMPT", prompt)
    return tokenizer
