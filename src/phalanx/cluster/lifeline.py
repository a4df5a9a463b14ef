"""Whether a process that we depend on still lives, by a connection to it on which nobody speaks."""

import socket
import threading
import time

CONNECT_S = 1.0


class Lifeline:
    """A connection that ends when the process at its other end does, or its machine.

    raylet = Lifeline("the raylet", f"{session}/sockets/raylet")
    raylet.is_cut()

    away_s: for as long it may be away and come back. Once cut, it stays cut.
    """

    def __init__(self, name: str, address: str, away_s: float = 0.0) -> None:
        self.name, self._address, self._away_s = name, address, away_s
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._gone_since: float | None = None
        self._is_cut = False

    def is_cut(self) -> bool:
        with self._lock:
            if not self._is_cut and not self._is_held() and not self._hold():
                self._gone_since = self._gone_since or time.monotonic()
                self._is_cut = time.monotonic() - self._gone_since >= self._away_s
            return self._is_cut

    def close(self) -> None:
        with self._lock:
            self._let_go()

    def _is_held(self) -> bool:
        if self._socket is None:
            return False
        try:
            while self._socket.recv(4096):  # a greeting
                pass
        except BlockingIOError:
            return True
        except OSError:
            pass
        self._let_go()
        return False

    def _hold(self) -> bool:
        """Connect again: the other end may hang up on whoever says nothing."""
        try:
            self._socket = _connect(self._address)
        except OSError:
            return False
        self._gone_since = None
        return True

    def _let_go(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _connect(address: str) -> socket.socket:
    """address: the path of a socket, or HOST:PORT."""
    if address.startswith("/"):
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(CONNECT_S)
        try:
            line.connect(address)
        except OSError:
            line.close()
            raise
    else:
        host, _, port = address.rpartition(":")
        line = socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S)
        # A machine that has lost its power closes nothing: ask it, from the fifth second on.
        line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, seconds in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, option):
                line.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), seconds)
    line.setblocking(False)
    return line
