"""The replies of OpenAI-compatible servers, read strictly: a completion, or an error and whether it may pass."""

import dataclasses
import datetime
import email.utils
import html
import json
import math
import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from lakewright.core_jax.support import Natural

LONGEST_WISH = 60.0  # seconds that are waited, at most, if a server asks for a pause
PASSING = (408, 409, 425, 429)  # errors that may pass, in addition to those from 500 on
LASTING = (501, 505, 511)  # of those from 500 on: another try gives the same
UNBILLED = (501, 503, 505, 511, 521, 522, 523, 525, 526, 529)  # of those from 500 on; nor is work done below 500
# Words in the code or type of an error that say what its status does not.
UNPAID = re.compile(r"insufficient|quota|billing|payment|credit", re.IGNORECASE)
REFUSED = re.compile(r"invalid|auth|permission|forbidden|not_?found|unsupported|bad_?request|content", re.IGNORECASE)
TITLE = re.compile(r"<(title|h1)\b[^<>]{0,200}>([^<]{1,200})", re.IGNORECASE)
# Bytes that may stand before a page are bounded, so that looking for one takes linear time.
PAGE = re.compile(
    rb"(?:\xef\xbb\xbf)?\s{0,99}(?:<\?xml[^>]{0,200}>\s{0,99})?(?:<!--(?:[^-]|-(?!->)){0,999}-->\s{0,99})?"
    rb"(?:<!doctype html|<html|<head|<body)",
    re.IGNORECASE,
)
WORDS = ("message", "detail", "error_msg", "error_message", "msg", "status_msg")  # fields of an error for people
PLACES = ("error", "errors", "base_resp")  # where a reply may hold an error
MOST_TOKENS = 1 << 40  # that a reply may claim
TokenCount = Annotated[Natural, msgspec.Meta(le=MOST_TOKENS)]


@dataclasses.dataclass(frozen=True)
class EndpointAnswer:
    """An answer of a model.

    Args:
        text: the answer.
        prompt_tokens, completion_tokens: as the server counts them; None if it does not.
        finish: why the model ended: `stop`, `length` ...
    """

    text: str
    prompt_tokens: int | None
    completion_tokens: int | None
    finish: str | None


class FailedTryError(Exception):
    """A try without an answer.

    Args:
        problem: one line.
        status: the HTTP error, if any.
        billed: True if a server may charge for it.
        passing: True if another try may succeed.
        pause: seconds that the server asks to wait before it, at most LONGEST_WISH.
    """

    def __init__(
        self, problem: str, status: int | None = None, *, billed: bool = True, passing: bool = True, pause: float = 0.0
    ) -> None:
        super().__init__(problem)
        self.status, self.billed, self.passing, self.pause = status, billed, passing, pause


def describe_refusal(status: int, headers: Mapping[str, str], body: bytes) -> FailedTryError:
    """Return the error of a reply with an HTTP error or a redirection."""
    said, kind = _read_error(body)
    if status < 400 and (place := headers.get("location")):
        said = f"its place is {place:.100}, which is not followed; give the address there"
    return FailedTryError(
        f"answers {status} ({said or 'nothing more'})",
        status,
        billed=status >= 500 and status not in UNBILLED,
        passing=_may_pass(status, kind),
        pause=read_pause(headers),
    )


def read_pause(headers: Mapping[str, str]) -> float:
    """Return the seconds that a server asks to wait, at most LONGEST_WISH; 0 if it does not ask."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        given = headers.get(name, "")
        try:
            pause = float(given) * unit
        except ValueError:
            pause = _count_seconds_until(given)
        if pause > 0:  # neither NaN nor in the past
            return min(pause, LONGEST_WISH)
    return 0.0


def read_completion(content: bytes, headers: Mapping[str, str] = {}) -> EndpointAnswer:
    """Return the first choice of a reply.

    Raises FailedTryError if the reply is an error or a page instead, ValueError if it is anything else.
    """
    if PAGE.match(content) or headers.get("content-type", "").startswith("text/html"):
        said = (
            f"a page, {_read_title(content)!r}, and no completion; give the address of its API, such as http://host/v1"
        )
        raise FailedTryError(f"sends {said}", billed=False, passing=False)
    try:
        raw = json.loads(content)
    except RecursionError as error:
        raise ValueError("JSON too deep") from error
    _refuse_error(raw, content, headers)
    found = msgspec.convert(_make_usual(raw), _Completion)
    choice, usage = found.choices[0], found.usage or _Usage()
    if choice.finish_reason == "error":
        raise FailedTryError("sends the beginning of an answer and an error (finish_reason: error)")
    # A file could not hold a lone surrogate.
    text = (choice.message.content or "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return EndpointAnswer(text, usage.prompt_tokens, usage.completion_tokens, choice.finish_reason)


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: TokenCount | None = None
    completion_tokens: TokenCount | None = None


class _Completion(msgspec.Struct):
    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1)]
    usage: _Usage | None = None


def _refuse_error(raw: Any, content: bytes, headers: Mapping[str, str]) -> None:
    """Raise FailedTryError if a reply of status 200 is an error: for the reply, or of its first choice."""
    if not isinstance(raw, dict):
        return
    choices = raw.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    told = raw.get("object") == "error" or any(map(_is_error, (raw.get("error"), first.get("error"))))
    if not told and (choices or not (_find_error(raw) or any(isinstance(raw.get(name), str) for name in WORDS))):
        return
    said, kind = _read_error(json.dumps(first).encode() if _is_error(first.get("error")) else content)
    number = next((int(part) for part in kind.split() if part.isascii() and part.isdigit() and len(part) == 3), None)
    passing = _may_pass(number or 500, kind)
    raise FailedTryError(f"sends an error ({said})", number, billed=False, passing=passing, pause=read_pause(headers))


def _find_error(raw: Mapping[str, Any]) -> Any:
    """Return what a reply says of an error, the first one of several."""
    found = next((raw[name] for name in PLACES if _is_error(raw.get(name))), None)
    return found[0] if isinstance(found, list) else found


def _is_error(value: Any) -> bool:
    """Return True for words, a code, or a table with any of these; a field without a value does not count."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
    return any(parts)


def _make_usual(raw: Any) -> Any:
    """Return a reply with its content as one text, and its counts of tokens as ints."""
    if not isinstance(raw, dict):
        return raw
    usual = dict(raw)
    if isinstance(usage := raw.get("usage"), dict):
        usual["usage"] = {name: _make_whole(value) for name, value in usage.items()}
    if isinstance(choices := raw.get("choices"), list):
        usual["choices"] = [_join_content(choice) for choice in choices[:1]]
    return usual


def _make_whole(value: Any) -> Any:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 16:
        return int(value)
    return int(value) if isinstance(value, float) and math.isfinite(value) and value == int(value) else value


def _join_content(choice: Any) -> Any:
    """Return a choice whose content, if it comes in parts, is their text; thoughts among them are left out.

    The text of a choice itself is its content, as in the older protocol, if it has no message.
    """
    if isinstance(choice, dict) and "message" not in choice and isinstance(choice.get("text"), str):
        return {**choice, "message": {"content": choice["text"]}}
    message = choice.get("message") if isinstance(choice, dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    parts = [content] if isinstance(content, dict) else content
    if not isinstance(message, dict) or not isinstance(parts, list):
        return choice
    texts = [_read_part(part) for part in parts]
    return {**choice, "message": {**message, "content": "".join(texts)}}


def _read_part(part: Any) -> str:
    """Return the text of a part of a content; empty for a thought, a picture, or a call of a tool."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or part.get("type", "text") not in ("text", "output_text"):
        return ""
    text = part.get("text", "")
    text = text.get("value") if isinstance(text, dict) else text
    if not isinstance(text, str):
        raise ValueError("a content part's text is not a string")
    return text


def _may_pass(status: int, kind: str) -> bool:
    """Return True if another try may succeed. kind: the code and the type of the error."""
    if UNPAID.search(kind):
        return False
    if status >= 500:
        return status not in LASTING and not REFUSED.search(kind)
    return status in PASSING


def _read_error(body: bytes) -> tuple[str, str]:
    """Return a server's words, and the codes and types of its error: for the usual forms, else all of the reply."""
    if PAGE.match(body):
        return f"a page, {_read_title(body)!r}", ""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace"), ""
    said = said[0] if isinstance(said, list) and said else said
    error = (_find_error(said) or said) if isinstance(said, dict) else said
    if not isinstance(error, dict):
        return str(error), " ".join(str(said.get("code", "")) for _ in [0]) if isinstance(said, dict) else ""
    kind = " ".join(str(error.get(name, "")) for name in ("code", "type", "status"))
    words = next((error[name] for name in WORDS if error.get(name)), error)
    return str(words), kind


def _read_title(page: bytes) -> str:
    found = TITLE.search(page[:65536].decode("utf-8", "replace"))
    return " ".join(html.unescape(found[2]).split()) if found else "without a title"


def _count_seconds_until(date: str) -> float:
    try:
        at = email.utils.parsedate_to_datetime(date)
    except ValueError:
        return 0.0
    now = datetime.datetime.now(datetime.UTC)
    return (at.replace(tzinfo=at.tzinfo or datetime.UTC) - now).total_seconds()
