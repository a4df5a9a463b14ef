"""The numbers of a run as TensorBoard events, where TensorBoard is installed."""

import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any


class Events:
    """Writes scalars to a run folder; does nothing without TensorBoard.

    Nothing is imported or written before the first number.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: Any = None
        self._installed = find_spec("tensorboard") is not None

    def add(self, step: int, numbers: dict[str, Any]) -> None:
        """One point on the curve of each of these numbers."""
        if not self._installed:
            return
        from tensorboard.compat.proto.summary_pb2 import Summary

        scalars = [
            Summary.Value(tag=name, simple_value=value)
            for name, value in numbers.items()
            if isinstance(value, float) and value == value
        ]
        self._write(step=step, summary=Summary(value=scalars))

    def forget_after(self, step: int) -> None:
        """A run went back to this step: TensorBoard drops what was written after it."""
        if not self._installed:
            return
        from tensorboard.compat.proto.event_pb2 import SessionLog

        self._write(step=step + 1, session_log=SessionLog(status=SessionLog.START))

    def _write(self, **fields: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        if self._writer is None:
            self._writer = EventFileWriter(str(self._folder), flush_secs=1)
        self._writer.add_event(Event(wall_time=time.time(), **fields))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
