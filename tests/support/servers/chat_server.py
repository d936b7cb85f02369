"""A real HTTP server that speaks the chat completions protocol, and misbehaves as the test asks."""

import contextlib
import gzip
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ZIPPED = 64 * gzip.compress(bytes(1 << 24), 1)
KEY = "sk-very-secret-0123456789"
LONG = 30.0  # seconds, more than any test waits
Reply = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]


class Server:
    """`plan`: what to do with the first requests, in turn; `usual` with all later ones. `seen`: their bodies."""

    def __init__(self, usual: Reply, plan: list[Reply]) -> None:
        self.usual, self.plan = usual, plan
        self.seen: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()
        self.most = 0  # requests that waited for their answers at once
        self._waiting: set[BaseHTTPRequestHandler] = set()
        self.url = ""
        self._lock = threading.Lock()

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        """Does with a request what is its turn."""
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        with self._lock:
            self._waiting.add(request)
            self.most = max(self.most, len(self._waiting))
            self.seen.append(body)
            self.keys.add(request.headers.get("Authorization"))
            reply = self.plan.pop(0) if self.plan else self.usual
        try:
            reply(request, body)
        finally:
            self.answered(request)

    def answered(self, request: BaseHTTPRequestHandler) -> None:
        """Counts a request no longer: before its answer leaves, as the client may ask again at once."""
        with self._lock:
            self._waiting.discard(request)


@contextlib.contextmanager
def serving(usual: Reply, plan: list[Reply] | None = None) -> Iterator[Server]:
    """A server at a port of its own, until the block ends."""
    server = Server(usual, plan or [])

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                server.handle(self)

        def end_headers(self) -> None:
            server.answered(self)
            super().end_headers()

        def log_message(self, *_: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *which: Any) -> None:
            if not isinstance(sys.exc_info()[1], ConnectionError):  # clients may hang up
                super().handle_error(*which)

    http = Quiet(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server.url = f"http://127.0.0.1:{http.server_port}/v1"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def send(request: BaseHTTPRequestHandler, data: bytes, status: int = 200, **headers: str) -> None:
    """Answers with `data`; an underscore in a header's name is a hyphen."""
    request.send_response(status)
    headers_sent = {"Content-Type": "application/json", "Content-Length": str(len(data))}
    for name, value in (headers_sent | {name.replace("_", "-"): value for name, value in headers.items()}).items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(data)


def completion(text: str | None, **fields: Any) -> bytes:
    """A completion as servers send it: 100 tokens in, 50 out."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    whole = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    usage = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
    return json.dumps({**whole, "usage": usage, **fields}).encode()


def saying(text: str | None, **fields: Any) -> Reply:
    """Says `text`."""
    return lambda request, body: send(request, completion(text, **fields))


def echo(request: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """Says what it was asked."""
    send(request, completion(body["messages"][-1]["content"]))


def failing(status: int, said: str = "no", **headers: str) -> Reply:
    """Answers with an error, and asks for another try at once unless `headers` say otherwise."""
    headers = {"retry_after_ms": "5"} | headers
    return lambda request, body: send(request, json.dumps({"error": {"message": said}}).encode(), status, **headers)


def garbage(request: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """Sends half a JSON."""
    send(request, b'{"choices": [{"mess')


def closed(request: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """Hangs up without a word."""
    request.close_connection = True


def cut(request: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """Promises more than it sends, and hangs up."""
    send(request, b'{"choices"', Content_Length="5000")
    request.close_connection = True


def dripping(request: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """Sends a blank now and then, as proxies do to keep a connection, and never an answer."""
    request.send_response(200)
    request.send_header("Content-Type", "application/json")
    request.end_headers()
    for _ in range(int(LONG / 0.05)):
        request.wfile.write(b" ")
        request.wfile.flush()
        time.sleep(0.05)
    request.close_connection = True


def silent(request: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """Says nothing for longer than anyone waits."""
    time.sleep(LONG)
    request.close_connection = True


def flooding(request: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """Sends a GB, as fast as it is taken."""
    request.send_response(200)
    request.end_headers()
    for _ in range(1024):
        request.wfile.write(b" " * (1 << 20))
    request.close_connection = True


def zipped(request: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """Sends a GB of blanks in a MB."""
    send(request, ZIPPED, Content_Encoding="gzip")


def dripping_headers(request: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """Sends one header after another, and never an answer."""
    request.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(int(LONG / 0.05)):
        request.wfile.write(b"X-%d: 0\r\n" % number)
        request.wfile.flush()
        time.sleep(0.05)
    request.close_connection = True


def short(request: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """Sends more than it promises."""
    whole = completion("hello")
    request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(whole) // 2) + whole)
    request.close_connection = True


def twice(request: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    """Answers, and sends at once what it would say to the next question."""
    for text in (body["messages"][-1]["content"], "an answer to another question"):
        whole = completion(text)
        request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(whole) + whole)


def no_lengths(lengths: bytes) -> Reply:
    """Promises so many bytes."""

    def reply(request: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: " + lengths + b"\r\n\r\n" + completion("hello"))
        request.close_connection = True

    return reply


def redirecting(url: str, status: int) -> Reply:
    """Sends the client to another server."""
    return lambda request, body: send(request, b"", status, Location=f"{url}/chat/completions")
