"""A scripted model behind `chat_server`: what it was asked, and its answer in pieces, as verifiers wants it."""

import json
from http.server import BaseHTTPRequestHandler

from tests.support.servers.chat_server import send


def prompt_of(body: dict) -> str:
    """The words of the last message of a request, which may come in parts."""
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def stream(request: BaseHTTPRequestHandler, text: str, **call: object) -> None:
    """A completion in pieces, as verifiers asks for it. call: the arguments of the tool `text`, which is called."""
    first = {"role": "assistant", "content": text}
    if call:
        function = {"name": text, "arguments": json.dumps(call)}
        first |= {"content": None, "tool_calls": [{"index": 0, "id": "1", "type": "function", "function": function}]}
    lines = []
    for piece, reason in ((first, None), ({}, "tool_calls" if call else "stop")):
        choice = {"index": 0, "delta": piece, "finish_reason": reason}
        chunk = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "scripted", "choices": [choice]}
        lines.append(f"data: {json.dumps(chunk)}\n\n")
    send(request, "".join([*lines, "data: [DONE]\n\n"]).encode(), Content_Type="text/event-stream")
