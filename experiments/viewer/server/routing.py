"""The application: pages, what the editor asks, exports and static files, and who may ask for them.

`serve_pages` finds a free port of the loopback address, prints the address, and runs until it is interrupted.
"""

import contextlib
import hashlib
import logging
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import parse_qs, quote, urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import keep_compiled_programs
from lakewright.experiments.viewer.catalogue.discovery import DEEPEST, Catalogue, Kind, MissingError, stamp_of_item
from lakewright.experiments.viewer.pages.rendering import Page, render_page, static_files
from lakewright.experiments.viewer.pages.routes import page_for
from lakewright.experiments.viewer.server.answering import Answering
from lakewright.experiments.viewer.server.exports import export_board
from lakewright.experiments.viewer.server.page_cache import PageCache

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
METHODS = ("GET", "HEAD")
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# For each kind of page the parts of its address before the name of an item.
BEFORE_NAME = {"stage": 1, "problems": 1, "boards": 2, "board": 3} | dict.fromkeys(
    ("run", "study", "sweep", "evaluation", "benchmark"), 0
)
LONGEST_ADDRESS = 16_384
LOG = logging.getLogger("lakewright.view")
HOST = "127.0.0.1"


class Protection:
    """Answers GET and HEAD whose Host is one of `hosts` and whose Origin, if there is one, is such a host too.

    A page elsewhere that has its own name resolve to this machine (DNS rebinding) sends its own name as Host.
    """

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...] = LOOPBACK) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        if refusal := self._find_refusal(scope["method"], Headers(scope=scope)):
            await PlainTextResponse(*refusal)(scope, receive, protected)
        else:
            await self._app(scope, receive, protected)

    def _find_refusal(self, method: str, headers: Headers) -> tuple[str, int] | None:
        if method not in METHODS:
            return "lakewright view is read-only: use GET or HEAD", 405
        if _name_of(headers.get("host", "")) not in self._hosts:
            return "unknown Host; open the address that lakewright view printed", 421
        origin = headers.get("origin")
        if origin is not None and _name_of(origin.partition("://")[2]) not in self._hosts:
            return "requests from other sites are not answered", 403
        return None


def _name_of(host: str) -> str:
    """A host without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0].lower()


def make_application(paths: Sequence[Path]) -> Starlette:
    """The viewer of the items under `paths`. Raises InputError if one is not there."""
    site = _Site(Catalogue(paths))
    routes = [
        Route("/static/{name}", _serve_static),
        Route("/api/draw", site.draw_board),
        Route("/api/solve", site.solve_board),
        Route("/api/checkpoint", site.ask_checkpoint),
        Route("/export/{kind}/{part}/{place:int}/{name:path}", site.export_file),
        Route("/{address:path}", site.answer_page),
    ]
    return Starlette(routes=routes, middleware=[Middleware(Protection)])


class _Site:
    """The requests, each answered in a thread of its own."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue, self._answering = catalogue, Answering(catalogue)
        self._cache = PageCache()

    async def answer_page(self, request: Request) -> Response:
        """A page, or why it is missing."""
        address, query = request.path_params["address"].rstrip("/"), request.url.query
        if len(address) + len(query) > LONGEST_ADDRESS:
            return _refuse_request(InputError(f"the address is longer than {LONGEST_ADDRESS} letters"))
        return await _respond(self._make_page, address, query, request.headers.get("if-none-match"))

    async def draw_board(self, request: Request) -> Response:
        """The picture of the editor's board."""
        return await _respond(self._answering.draw_board, request.query_params.get("board", ""), short=True)

    async def solve_board(self, request: Request) -> Response:
        """The solver's answer to the editor's board."""
        return await _respond(self._answering.solve_board, request.query_params.get("board", ""), short=True)

    async def ask_checkpoint(self, request: Request) -> Response:
        """The plan of a checkpoint for a board."""
        asked = (request.query_params.get(name, "") for name in ("board", "checkpoint"))
        return await _respond(self._answering.ask_checkpoint, *asked, short=True)

    async def export_file(self, request: Request) -> Response:
        """A board as a file."""
        form = request.query_params.get("form", "")
        return await _respond(export_board, self._catalogue, form=form, **request.path_params)

    def _make_page(self, address: str, query: str, known: str | None) -> Response:
        html = self._render_cached(address, query)
        tag = f'"{hashlib.sha256(html.encode()).hexdigest()[:24]}"'
        headers = {"etag": tag, "cache-control": "no-cache"}
        return Response(status_code=304, headers=headers) if known == tag else HTMLResponse(html, headers=headers)

    def _render_cached(self, address: str, query: str) -> str:
        """A page, from the cache if its files have not changed."""
        place, asked = f"{address}?{query}", parse_qs(query, keep_blank_values=True)
        stamp = self._make_stamp(address, asked)
        if stamp and (cached := self._cache.find_page(place, stamp)):
            return cached
        page = page_for(self._catalogue, address, asked)
        html = render_page(page, write_link)
        if stamp and (not page.live or not address):
            self._cache.keep_page(place, stamp, html)
        return html

    def _make_stamp(self, address: str, asked: Mapping[str, list[str]]) -> str:
        """A text that changes whenever the page does; empty if unknown. The first page is cached for a second."""
        kind, *rest = address.split("/")
        if kind == "":
            return f"{time.monotonic():.0f}"
        if kind == "compare":
            runs = [self._catalogue.find(Kind.RUN, name) for name in asked.get("run", [])]
            return f"{self._catalogue.hash_items()} {[stamp_of_item(run) for run in runs]}"
        behind = BEFORE_NAME.get(kind)
        if behind is None or len(rest) <= behind:
            return ""
        of = rest[0] if kind in ("boards", "board") else "run" if kind in ("stage", "problems") else kind
        return stamp_of_item(self._catalogue.find(Kind(of), "/".join(rest[behind:]))) if of in list(Kind) else ""


def write_link(address: str, **query: object) -> str:
    """An address of this server, from its root."""
    given = urlencode(query, doseq=True)
    return f"/{quote(address)}{'?' if given else ''}{given}"


async def _respond(function, *arguments, short: bool = False, **named) -> Response:
    """A response, or a page (a line if `short`) that says why it is missing."""
    try:
        found = await run_in_threadpool(function, *arguments, **named)
        return found if isinstance(found, Response) else HTMLResponse(found)
    except InputError as error:
        return _refuse_request(error, short)
    except OSError as error:
        return _refuse_request(MissingError(f"{error.strerror or error}; was it just removed?"), short)
    except Exception:  # a page never shows a stack trace; the terminal does
        LOG.exception("a page could not be made")
        return _refuse_request(
            InputError("this page could not be made; the terminal of lakewright view says why"), short, 500
        )


def _refuse_request(error: InputError, short: bool = False, status: int = 0) -> Response:
    missing = isinstance(error, MissingError)
    status = status or (404 if missing else 422)
    if short:
        return Response(str(error)[:600], status, media_type="text/plain")
    title = "Page not found" if missing else "Cannot show this page"
    return HTMLResponse(render_page(Page(title, "error.html", {"words": str(error)[:600]}), write_link), status)


async def _serve_static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in static_files():
        return Response("not here", 404, media_type="text/plain")
    kind = KINDS.get(Path(name).suffix, "text/plain")
    return Response(static_files()[name], media_type=kind, headers={"cache-control": "no-cache"})


def serve_pages(paths: Sequence[Path], port: int = 0, browser: bool = False) -> None:
    """Serves what lies under `paths` until it is interrupted. port: 0 for any that is free.

    Raises InputError if a path is not there or the port is taken.
    """
    keep_compiled_programs()
    app = make_application(paths)
    with contextlib.closing(_open_socket(port)) as listener:
        address = f"http://{HOST}:{listener.getsockname()[1]}/"
        print(address, flush=True)
        print(f"lakewright view: read-only, up to {DEEPEST} folders deep; stop it with Ctrl-C", file=sys.stderr)
        if browser:
            threading.Timer(0.5, webbrowser.open, [address]).start()
        logging.basicConfig(level=logging.WARNING)
        config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, lifespan="off")
        uvicorn.Server(config).run(sockets=[listener])


def _open_socket(port: int) -> socket.socket:
    try:
        listener = socket.create_server((HOST, port))
    except (OSError, OverflowError) as error:
        raise InputError(f"--port {port} cannot be used ({error}); choose another, or leave it out") from error
    listener.set_inheritable(True)
    return listener
