"""The replies of an OpenAI-compatible server, read strictly."""

import dataclasses
import json
from typing import Annotated

import msgspec

from lakewright.core_jax.support import Natural

MOST_TOKENS = 1 << 40  # that a reply may claim
Tokens = Annotated[Natural, msgspec.Meta(le=MOST_TOKENS)]


@dataclasses.dataclass(frozen=True)
class EndpointAnswer:
    """What a model answered.

    Tokens as the server counts them, None where it does not. finish: why the model ended, `stop`, `length` ...
    """

    text: str
    prompt_tokens: int | None
    completion_tokens: int | None
    finish: str | None


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: Tokens | None = None
    completion_tokens: Tokens | None = None


class _Completion(msgspec.Struct):
    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1)]
    usage: _Usage | None = None


def read_completion(content: bytes) -> EndpointAnswer:
    """The first choice of a reply. Raises ValueError where the reply is not a completion."""
    try:
        found = msgspec.convert(json.loads(content), _Completion)
    except RecursionError as error:
        raise ValueError("JSON too deep") from error
    choice, usage = found.choices[0], found.usage or _Usage()
    # A lone surrogate is no text that a file could hold.
    text = (choice.message.content or "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return EndpointAnswer(text, usage.prompt_tokens, usage.completion_tokens, choice.finish_reason)
