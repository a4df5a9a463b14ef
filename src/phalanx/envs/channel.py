"""Messages between a worker and the caller: what is rare, or of no fixed size.

Infos, faults, and calls of an environment's methods travel here; nothing that every step has.
"""

import pickle
import select
import socket
import struct
from typing import Any

import cloudpickle

from phalanx.system import DONT_WAIT

HEADER = struct.Struct("<Q")
PIECE = 1 << 20


Message = Any  # a word and what goes with it, as the other side has pickled it


class Channel:
    """One end of a pair. `send` waits for room; `receive` takes what has arrived whole."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._buffer = bytearray()
        self.closed = False

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, message: object) -> None:
        try:
            packed = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        except Exception:  # classes of a notebook, lambdas: slower, but it can
            packed = cloudpickle.dumps(message)
        self._end.sendall(HEADER.pack(len(packed)) + packed)

    def receive(self) -> list[Message]:
        """All messages that are there, without waiting. A message cut off by a death is dropped."""
        while not self.closed and (DONT_WAIT or select.select([self._end], [], [], 0)[0]):
            try:
                piece = self._end.recv(PIECE, DONT_WAIT)
            except BlockingIOError:
                break
            except ConnectionError:
                piece = b""
            self.closed = not piece
            self._buffer += piece
        return self._whole()

    def receive_one(self) -> Message:
        """Wait for the next message."""
        while not (messages := self._whole(1)):
            piece = self._end.recv(PIECE)
            if not piece:
                raise EOFError("the caller is gone")
            self._buffer += piece
        return messages[0]

    def _whole(self, most: int | None = None) -> list[Message]:
        messages: list[Message] = []
        start = 0
        while len(self._buffer) - start >= HEADER.size and len(messages) != most:
            (size,) = HEADER.unpack_from(self._buffer, start)
            end = start + HEADER.size + size
            if len(self._buffer) < end:
                break
            messages.append(pickle.loads(memoryview(self._buffer)[start + HEADER.size : end]))
            start = end
        if start:
            del self._buffer[:start]
        return messages

    def close(self) -> None:
        self._end.close()
