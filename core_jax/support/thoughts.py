"""The answer within a language model's message: its own last words, without its thoughts.

Models mark thoughts in many ways. The marks of a model's own template are read by `find_marks` of its codec; for all
other texts this is the list, in upper or lower case:

- `<think>`, `<thinking>`, `<thought>`, `<reasoning>`, `<reflection>`, `<scratchpad>`, `<analysis>`, `<cot>`, and
  `<seed:think>`, as of DeepSeek, Qwen, GLM, EXAONE and Seed;
- the same with attributes, and longer names: `<inner_monologue>`, `<think_never_used_51bce0c785>` of Hunyuan;
- `[THINK]` of Magistral; `◁think▷` of Kimi;
- `<|begin_of_thought|>`, `<|START_THINKING|>`, `<|thought_start|>`, `<|inner_prefix|>` of OpenThinker, Command A and
  Apertus;
- `<|channel|>analysis<|message|>` to `<|channel|>final<|message|>` of gpt-oss, also without its special tokens;
- `<|channel>thought` to `<channel|>` and `<unused94>thought` to `<unused95>` of Gemma;
- `[unused16]` to `[unused17]` of openPangu;
- `Here is my thought process:` to `Here is my response:` of Granite.

The end of a thought inside another one ends that one alone.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_KIND = r"(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflections?|monologue)"
_BEFORE = r"(?:(?:inner|internal|ant|self|hidden|private|my|chain[_-]of)[_-]?)?"
_AFTER = r"(?:[_-]?(?:process|steps?|trace|block)|_never_used_\w{1,40})?"
_NAME = rf"(?:{_BEFORE}{_KIND}{_AFTER}|scratch_?pad|analysis|cot)"
# Every quantifier is bounded, so that no text takes more than linear time.
_OPENS = (
    rf"<\s{{0,4}}(?:\w{{1,20}}:)?{_NAME}(?:\s[^<>]{{0,100}})?>",
    rf"\[{_NAME}\]",
    rf"\u25c1{_NAME}\u25b7",
    rf"<\uff5c{_NAME}\uff5c>",
    rf"<\|(?:begin|start)_?(?:of_)?{_NAME}\|>",
    rf"<\|{_NAME}(?:_(?:start|begin))?\|>",
    r"<\|inner_prefix\|>",
    r"<\|channel\|>(?!\s{0,4}final\b)(?:(?:[^<]|<\|constrain\|>){0,200}<\|message\|>)?",
    r"<\|channel>(?!\s{0,4}final\b)(?:thought)?",
    r"<unused94>(?:thought)?",
    r"\[unused16\]",
    r"Here(?:'s| is) my thought process:",
    r"\A\s{0,40}(?:assistant)?analysis(?=[A-Z])",
)
_CLOSES = (
    rf"<\s{{0,4}}/\s{{0,4}}(?:\w{{1,20}}:)?{_NAME}\s{{0,4}}>",
    rf"\[/{_NAME}\]",
    rf"\u25c1/{_NAME}\u25b7",
    rf"<\uff5c/{_NAME}\uff5c>",
    rf"<\|end_?(?:of_)?{_NAME}\|>",
    rf"<\|(?:/{_NAME}|{_NAME}_end)\|>",
    r"<\|inner_suffix\|>",
    r"<\|channel\|>\s{0,4}final(?:[^<]|<\|constrain\|>){0,200}<\|message\|>",
    r"<channel\|>",
    r"<unused95>",
    r"\[unused17\]",
    r"Here(?:'s| is) my response:",
    r"assistant(?:commentary)?final(?=[A-Z\d\W])",
)
# Every mark begins in one of these ways. Trying them first halves the time on a long text without marks.
_BEGINS = r"(?=[<\[\u25c1]|here|assistant|\A)"
_USUAL = re.compile(f"{_BEGINS}(?:(?P<close>{'|'.join(_CLOSES)})|(?P<open>{'|'.join(_OPENS)}))", re.IGNORECASE)
# A word of each mark. A text without any, as most answers are, is not looked through for marks.
_WORDS = (
    *("think", "thought", "reason", "reflection", "monologue", "scratch", "analysis", "cot"),
    *("inner_", "channel", "unused", "my response", "assistant"),
)
# The end of each usual mark.
_ENDS = (
    (r"<unused94>.*", "<unused95>"),
    (r"\[unused16\]", "[unused17]"),
    ("<\uff5c(.+)\uff5c>", "<\uff5c/\\1\uff5c>"),
    (r"<\s*([^\s|<>]+)(?:\s[^<>]*)?>", r"</\1>"),
    (r"\[(.+)\]", r"[/\1]"),
    ("\u25c1(.+)\u25b7", "\u25c1/\\1\u25b7"),
    (r"<\|(?:begin|start)_(.+)\|>", r"<|end_\1|>"),
    (r"<\|START_(.+)\|>", r"<|END_\1|>"),
    (r"<\|(.+)_(?:start|begin)\|>", r"<|\1_end|>"),
    (r"<\|inner_prefix\|>", "<|inner_suffix|>"),
    (r"<\|channel\|>.*", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    (r"<\|channel>.*", "<channel|>"),
    (r"Here.*process:", "Here is my response:"),
    (r"(?:assistant)?analysis", "assistantfinal"),
)
# What stands around an answer, and is no part of it: turns, channels and ends of answers.
_FRAME = re.compile(
    r"<\|(?:start\|>assistant|(?:return|end|im_end|end_of_turn|endoftext|eot_id|START_RESPONSE|END_RESPONSE)\|>|"
    r"(?:begin|end)_of_(?:solution|box)\|>)"
)

_NAMED = re.compile(r"[<\[\u25c1]\s*/?\s*([\w:-]+)")
_QUOTES = ("`", "'", '"')

Marks = tuple[str, str]
"""The words with which a thought begins and ends."""


def read_answer_after_thoughts(text: str, marks: Sequence[Marks] = ()) -> tuple[str, str]:
    """Return what a model said after its last thought, and the mark after which it was cut off, empty if it was not.

    marks: further marks, from the model's own template.
    """
    if not (found := _list_marks(text, marks)):
        return text, ""
    start, stop, opens = max(found, key=lambda mark: (mark[1], mark[1] - mark[0]))
    if opens:
        return "", text[start:stop]
    if outer := _find_outer_thought(text, found, _find_name(text[start:stop])):
        return "", outer
    return _FRAME.sub("", text[stop:]), ""


def _find_outer_thought(text: str, marks: Sequence[tuple[int, int, bool]], name: str) -> str:
    """Return the mark of the thought that others of its name are inside, if these have ended and it has not."""
    begun: list[str] = []
    for start, stop, opens in sorted(marks) if name else ():
        if _find_name(text[start:stop]) != name or (begun and text[start - 1 : start] in _QUOTES):
            continue  # of another kind, or a thought that only speaks of a mark
        if opens:
            begun.append(text[start:stop])
        elif begun:
            begun.pop()
    return begun[-1] if begun else ""


def _find_name(mark: str) -> str:
    """Return the name in a mark as of XML, in lower case; empty of another, which cannot be inside its own kind."""
    found = _NAMED.match(mark)
    return found[1].lower() if found else ""


def split_at_end_of_thought(text: str, marks: Sequence[Marks] = ()) -> tuple[str, str]:
    """Return the text before the first mark that ends a thought, and that mark; the whole text and "" without one.

    marks: see `read_answer_after_thoughts`.
    """
    ends = [(start, stop) for start, stop, opens in _list_marks(text, marks) if not opens]
    start, stop = min(ends, key=lambda end: (end[0], -end[1]), default=(len(text), len(text)))
    return text[:start], text[start:stop]


def write_end_of_thought(begin: str, marks: Sequence[Marks] = ()) -> str:
    """Return the mark that ends a thought which this one begins. marks: see `read_answer_after_thoughts`."""
    own = [end for start, end in marks if start.strip() == begin.strip()]
    ways = (re.sub(pattern, end, begin.strip()) for pattern, end in _ENDS if re.fullmatch(pattern, begin.strip()))
    return next(iter([*own, *ways]), "</think>")


def _list_marks(text: str, marks: Sequence[Marks]) -> list[tuple[int, int, bool]]:
    """Where each mark begins and ends, and whether it begins a thought."""
    usual = _USUAL.finditer(text) if _has_word(text) else ()
    found = [(mark.start(), mark.end(), mark["open"] is not None) for mark in usual]
    for begin, end in marks:
        found += [(mark.start(), mark.end(), True) for mark in re.finditer(re.escape(begin), text)]
        found += [(mark.start(), mark.end(), False) for mark in re.finditer(re.escape(end), text)]
    return found


def _has_word(text: str) -> bool:
    """Return whether a text may hold a usual mark: always beyond ASCII, where a letter has further forms."""
    if not text.isascii():
        return True
    lower = text.lower()
    return any(word in lower for word in _WORDS)


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
