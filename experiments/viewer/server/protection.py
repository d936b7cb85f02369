"""Protection from other sites: checks of Host and Origin, and a policy against inline scripts."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
            return "lakewright view only reads: GET and HEAD", 405
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
