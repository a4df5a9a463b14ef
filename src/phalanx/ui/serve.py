"""The server: one socket on this machine alone, one address with a token, until Ctrl-C."""

import logging
import os
import secrets
import signal
import socket
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from phalanx.errors import ConfigError, MissingError
from phalanx.ui.config import UiConfig

if TYPE_CHECKING:
    import uvicorn

LOOPBACK = "127.0.0.1"
AT_ONCE = 64  # connections; one person's browser has six
GOODBYE_S = 1  # requests may take so long to end


class Served:
    """A server that has begun to listen.

    with serving(Path("runs")) as served:
        served.address                      # http://127.0.0.1:41234/?token=...
    """

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.socket = _listen(port)
        self.port = int(self.socket.getsockname()[1])
        self.token = secrets.token_urlsafe(32)
        self.origin = f"http://{LOOPBACK}:{self.port}"
        self.address = f"{self.origin}/?token={self.token}"
        try:
            self._server = _make_server(folder, self.token, self.port)
        except BaseException:
            self.socket.close()
            raise

    def run(self) -> None:
        """Answer until `end`, or Ctrl-C."""
        try:
            self._server.run(sockets=[self.socket])
        finally:
            self.socket.close()

    def end(self) -> None:
        self._server.should_exit = True


def run(config: UiConfig, say: Callable[[str], None] = print) -> None:
    """The command: listens, says where, opens a browser, answers until Ctrl-C."""
    served = Served(config.folder, config.port)
    # Ctrl-C before the server's own handler is there: it ends as soon as it has begun
    before = signal.signal(signal.SIGINT, lambda *_: served.end())
    try:
        say(f"phalanx ui: {served.address}  (Ctrl-C ends it)")
        if not config.no_open and _has_screen():
            Thread(target=webbrowser.open, args=(served.address,), daemon=True).start()
        served.run()
    finally:
        signal.signal(signal.SIGINT, before)
        served.socket.close()


@contextmanager
def serving(folder: Path, port: int = 0) -> Iterator[Served]:
    """The same in a thread, for programs and tests."""
    served = Served(folder, port)
    thread = Thread(target=served.run, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        served.end()
        thread.join()


def _make_server(folder: Path, token: str, port: int) -> "uvicorn.Server":
    try:
        import uvicorn

        from phalanx.ui.app import make_app
    except ImportError as error:
        if error.name is not None and error.name.startswith("phalanx"):
            raise
        raise MissingError("the web app needs a server: pip install 'phalanx[ui]'") from None
    settings = uvicorn.Config(
        make_app(folder, token, port),
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="on",
        ws="none",
        limit_concurrency=AT_ONCE,
        timeout_graceful_shutdown=GOODBYE_S,
        proxy_headers=False,
        http="h11",
        loop="asyncio",
    )
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # errors are ours to tell
    return uvicorn.Server(settings)


def _listen(port: int) -> socket.socket:
    """A socket that only this machine reaches."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if os.name == "posix":  # elsewhere the same lets others take the port
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
        listening.listen(AT_ONCE)
    except OSError as error:
        listening.close()
        raise ConfigError(
            f"cannot listen on port {port}: {error.strerror}; give another --port, or leave it out"
        ) from None
    return listening


def _has_screen() -> bool:
    """Whether a browser would open in a window: one in a terminal would be in the way."""
    if sys.platform.startswith("linux"):
        return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return True
