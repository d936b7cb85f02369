"""The answer in what a language model said: its own last words, without its thoughts.

Models mark thoughts in many ways. The marks of a model's own template are read by `find_marks` of its codec; for all
other texts this is the list, in upper or lower case:

- `<think>`, `<thinking>`, `<thought>`, `<reasoning>`, `<reflection>`, `<scratchpad>`, `<analysis>`, and `<seed:think>`,
  as of DeepSeek, Qwen, GLM, EXAONE and Seed; `[THINK]` of Magistral; `◁think▷` of Kimi;
- `<|begin_of_thought|>`, `<|START_THINKING|>`, `<|thought_start|>`, `<|inner_prefix|>` of OpenThinker, Command A and
  Apertus;
- `<|channel|>analysis<|message|>` to `<|channel|>final<|message|>` of gpt-oss, also without its special tokens;
- `<|channel>thought` to `<channel|>` and `<unused94>thought` to `<unused95>` of Gemma;
- `Here is my thought process:` to `Here is my response:` of Granite.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_NAME = r"(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad|analysis)"
# Every quantifier is bounded, so that no text takes more than linear time.
_OPENS = (
    rf"<(?:\w{{1,20}}:)?{_NAME}>",
    rf"\[{_NAME}\]",
    rf"\u25c1{_NAME}\u25b7",
    rf"<\|(?:begin|start)_?(?:of_)?{_NAME}\|>",
    rf"<\|{_NAME}(?:_(?:start|begin))?\|>",
    r"<\|inner_prefix\|>",
    r"<\|channel\|>(?!\s{0,4}final\b)(?:(?:[^<]|<\|constrain\|>){0,200}<\|message\|>)?",
    r"<\|channel>(?!\s{0,4}final\b)(?:thought)?",
    r"<unused94>(?:thought)?",
    r"Here(?:'s| is) my thought process:",
    r"\A\s{0,40}(?:assistant)?analysis(?=[A-Z])",
)
_CLOSES = (
    rf"</(?:\w{{1,20}}:)?{_NAME}>",
    rf"\[/{_NAME}\]",
    rf"\u25c1/{_NAME}\u25b7",
    rf"<\|end_?(?:of_)?{_NAME}\|>",
    rf"<\|(?:/{_NAME}|{_NAME}_end)\|>",
    r"<\|inner_suffix\|>",
    r"<\|channel\|>\s{0,4}final(?:[^<]|<\|constrain\|>){0,200}<\|message\|>",
    r"<channel\|>",
    r"<unused95>",
    r"Here(?:'s| is) my response:",
    r"assistant(?:commentary)?final(?=[A-Z\d\W])",
)
_USUAL = re.compile(f"(?P<close>{'|'.join(_CLOSES)})|(?P<open>{'|'.join(_OPENS)})", re.IGNORECASE)
# What stands around an answer, and is no part of it: turns, channels and ends of answers.
_FRAME = re.compile(r"<\|(?:start\|>assistant|return|end|im_end|end_of_turn|START_RESPONSE|END_RESPONSE|eot_id)\|?>?")

Marks = tuple[str, str]
"""The words with which a thought begins and ends."""


def read_answer_after_thoughts(text: str, marks: Sequence[Marks] = ()) -> tuple[str, str]:
    """Return what a model said after its last thought, and the mark after which it was cut off, empty if it was not.

    marks: for the model's own template, in addition to the usual ones.
    """
    found = [(mark.start(), mark.end(), mark["open"] is not None) for mark in _USUAL.finditer(text)]
    for begin, end in marks:
        found += [(mark.start(), mark.end(), True) for mark in re.finditer(re.escape(begin), text)]
        found += [(mark.start(), mark.end(), False) for mark in re.finditer(re.escape(end), text)]
    if not found:
        return text, ""
    start, stop, opens = max(found, key=lambda mark: (mark[1], mark[1] - mark[0]))
    if opens:
        return "", text[start:stop]
    return _FRAME.sub("", text[stop:]), ""


def strip_thoughts(text: str, marks: Sequence[Marks] = ()) -> str:
    """Return what a model said after its last thought; empty if it was cut off in one."""
    return read_answer_after_thoughts(text, marks)[0]


def begins_thought(text: str, marks: Sequence[Marks] = ()) -> str:
    """Return the mark of a thought with which a prompt ends; empty without one."""
    cut = read_answer_after_thoughts(text, marks)[1]
    return cut if cut and text.rstrip().endswith(cut.rstrip()) else ""


def read_last_words(said: str | Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a completion: for a conversation its last message of the model, and no result of a tool."""
    if isinstance(said, str):
        return said
    mine = [message for message in said if message.get("role", "assistant") in ("assistant", "model", "ai")]
    content = mine[-1].get("content") if mine else None
    parts: Iterable[Any] = content if isinstance(content, list | tuple) else [content]
    return "".join(map(_read_text, parts))


def _read_text(part: Any) -> str:
    if isinstance(part, Mapping):
        part = part.get("text") if part.get("type", "text") in ("text", "output_text") else ""
    return part if isinstance(part, str) else ""
