"""A server with the requests and replies of vLLM's own, as TRL 1.16 starts it (`trl/scripts/vllm_serve.py`) and asks it
(`trl/generation/vllm_client.py`): `/health`, `/v1/models` and `/v1/chat/completions`.
"""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "Qwen/Qwen3-0.6B"
LONGEST = 4096  # tokens of a prompt and its answer: `--max-model-len`


class TrlServer:
    """say: the answer to some messages. seen: the requests for answers."""

    def __init__(self, say: Callable[[list[dict[str, Any]]], str]) -> None:
        self.say, self.url = say, ""
        self.seen: list[dict[str, Any]] = []

    def answer(self, path: str, body: dict[str, Any] | None) -> tuple[int, dict[str, Any]]:
        """The status and the reply of a request; body: None of a GET."""
        if path == "/health":
            return 200, {}
        if path == "/v1/models":
            return 200, {"object": "list", "data": [{"id": MODEL, "object": "model", "max_model_len": LONGEST}]}
        if path != "/v1/chat/completions" or body is None:
            return 404, {"detail": "Not Found"}
        self.seen.append(body)
        if body["model"] != MODEL:
            return 404, make_error(f"The model `{body['model']}` does not exist.", "NotFoundError", 404)
        prompt = sum(len(message["content"]) for message in body["messages"]) // 4
        most = body.get("max_completion_tokens") or body.get("max_tokens") or LONGEST - prompt
        if prompt + most > LONGEST:
            told = (
                f"'max_tokens' or 'max_completion_tokens' is too large: {most}. This model's maximum context length is"
            )
            return 400, make_error(
                f"{told} {LONGEST} tokens and your request has {prompt} input tokens", "BadRequestError", 400
            )
        return 200, make_completion(self.say(body["messages"]), prompt, body)


def make_error(message: str, kind: str, code: int) -> dict[str, Any]:
    """An error, as vLLM words it."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def make_completion(text: str, prompt: int, body: dict[str, Any]) -> dict[str, Any]:
    """A completion; with the token ids and log-probabilities that TRL asks for, and an engineer does not."""
    ids = list(text.encode())
    content = [{"token": f"token_id:{one}", "logprob": -0.5, "bytes": None, "top_logprobs": []} for one in ids]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, "refusal": None, "tool_calls": [], "reasoning": None},
        "logprobs": {"content": content} if body.get("logprobs") else None,
        "finish_reason": "stop",
        "stop_reason": None,
        "token_ids": ids if body.get("return_token_ids") else None,
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "choices": [choice],
        "service_tier": None,
        "usage": {"prompt_tokens": prompt, "total_tokens": prompt + len(ids), "completion_tokens": len(ids)},
        "prompt_logprobs": None,
        "prompt_token_ids": list(range(prompt)) if body.get("return_token_ids") else None,
        "kv_transfer_params": None,
    }


@contextlib.contextmanager
def serving_as_trl(say: Callable[[list[dict[str, Any]]], str]) -> Iterator[TrlServer]:
    """A server at a port of its own, until the block ends."""
    server = TrlServer(say)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.reply(*server.answer(self.path, None))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.reply(*server.answer(self.path, body))

        def reply(self, status: int, found: dict[str, Any]) -> None:
            data = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
