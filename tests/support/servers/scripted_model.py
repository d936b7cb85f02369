"""A scripted model behind `chat_server`: what it was asked, and its answer in pieces, as verifiers wants it."""

import json
from http.server import BaseHTTPRequestHandler

from tests.support.servers.chat_server import send


def prompt_of(body: dict) -> str:
    """The words of the last message of a request, which may come in parts."""
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def stream(request: BaseHTTPRequestHandler, text: str) -> None:
    """A completion in pieces, as verifiers asks for it."""
    pieces = [{"role": "assistant", "content": text}, {}]
    lines = []
    for piece, reason in zip(pieces, (None, "stop"), strict=True):
        choice = {"index": 0, "delta": piece, "finish_reason": reason}
        chunk = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "scripted", "choices": [choice]}
        lines.append(f"data: {json.dumps(chunk)}\n\n")
    send(request, "".join([*lines, "data: [DONE]\n\n"]).encode(), Content_Type="text/event-stream")
