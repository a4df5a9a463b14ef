"""Who may ask: every request is from this machine's own page, holds the token, and is small.

A page elsewhere can make a browser send requests here. It cannot know the token (which comes in the
address, then in a cookie that no other site's request carries), its name for this machine is not
ours (so a name that is made to point here is refused), and its origin is named by the browser.
"""

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from phalanx.show.drawing.page import asset

Message = MutableMapping[str, Any]  # as ASGI has them, for which it has no types
Scope = Message
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 64 * 1024  # of a request's body
HEADER = "x-phalanx-token"
READS = ("GET", "HEAD")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# A page that holds everything inside: nothing may be loaded, and it is a stranger to the app.
ALONE = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "sandbox allow-scripts allow-downloads allow-popups"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
REFUSED = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>phalanx: not this address</title>
<style>{style}</style></head>
<body><h1>Not this address</h1>
<p>{why}.</p>
<p>Open the whole address that <code>phalanx ui</code> printed, token included.</p></body>
</html>
"""


class Refusal(NamedTuple):
    """Why a request is not answered."""

    status: int
    why: str


class Guard:
    """Lets through what the app's own page asks, and puts the same headers on every answer."""

    def __init__(self, app: App, token: str, port: int) -> None:
        self.app, self.token = app, token
        # Browsers send a cookie to all ports of a machine: each app has a name of its own.
        self.cookie = f"phalanx-{port}"
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.origins = {f"http://{host}" for host in self.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # there is nothing else, but for the server's own start and end
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        refusal = self.refusal(scope, headers)
        body = b""
        if refusal is None:
            body, refusal = await _whole_body(receive)
        if refusal is not None:
            await _answer(send, refusal, "text/html" in headers.get("accept", ""))
            return
        asked = parse_qs(scope["query_string"].decode("latin-1"))
        await self.app(scope, _given(body, receive), self._marked(send, "token" in asked))

    def refusal(self, scope: Scope, headers: dict[str, str]) -> Refusal | None:
        """Why a request is not to be answered; None: it is."""
        if headers.get("host") not in self.hosts:
            return Refusal(403, "This app answers to 127.0.0.1 and localhost only")
        by_header = self._is_right(headers.get(HEADER))
        by_address = any(map(self._is_right, _token_in(scope)))
        by_cookie = self._is_right(_cookies(headers).get(self.cookie))
        if not (by_header or by_address or by_cookie):
            return Refusal(403, "The token is missing or wrong")
        origin = headers.get("origin")
        if origin is not None and origin not in self.origins:
            return Refusal(403, "Another site has asked")
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and not by_address:
            return Refusal(403, "Another site has asked")
        if scope["method"] in READS:
            return None
        if origin is None and not by_header:  # a browser names it
            return Refusal(403, "Who asks is not known")
        if headers.get("content-type", "").split(";")[0].strip() != "application/json":
            return Refusal(415, "What is sent must be application/json")
        return None

    def _is_right(self, token: str | None) -> bool:
        """Compared in the same time wherever it differs."""
        given = (token or "").encode("utf-8", "replace")
        return hmac.compare_digest(given, self.token.encode())

    def _marked(self, send: Send, by_address: bool) -> Send:
        """The same, with our headers, and with the cookie if the address held the token."""

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = list(message.get("headers", []))
                names = {name.lower() for name, _value in own}
                own += [
                    (name.encode(), value.encode())
                    for name, value in HEADERS.items()
                    if name.encode() not in names
                ]
                if by_address:
                    cookie = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
                    own.append((b"set-cookie", cookie.encode()))
                message["headers"] = own
            await send(message)

        return marked


def _token_in(scope: Scope) -> list[str]:
    """That of the address; only the page itself is asked for so."""
    if scope["path"] != "/" or scope["method"] not in READS:
        return []
    return parse_qs(scope["query_string"].decode("latin-1")).get("token", [])


def _cookies(headers: dict[str, str]) -> dict[str, str]:
    """By name; those of other apps on this machine come too, however they are written."""
    pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
    return {name: value for name, _equals, value in pairs}


async def _whole_body(receive: Receive) -> tuple[bytes, Refusal | None]:
    """All that is sent, unless it is too much: that is not waited for."""
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MOST_BYTES:
            return b"", Refusal(413, f"A request may have {MOST_BYTES:,} bytes")
    return body, None


def _given(body: bytes, receive: Receive) -> Receive:
    """What was read already, for whoever reads it next."""
    is_told = False

    async def given() -> MutableMapping[str, object]:
        nonlocal is_told
        if is_told:
            return await receive()
        is_told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return given


async def _answer(send: Send, refusal: Refusal, as_page: bool) -> None:
    """A refusal, as a page for a person and as text for a program."""
    kind, said = "text/plain", refusal.why
    headers = {**HEADERS, "connection": "close"}
    if as_page:
        kind, said = "text/html", REFUSED.format(style=asset("base.css"), why=refusal.why)
        headers["content-security-policy"] = ALONE
    body = said.encode()
    headers |= {"content-type": f"{kind}; charset=utf-8", "content-length": str(len(body))}
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
