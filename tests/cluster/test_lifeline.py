"""A connection on which nobody speaks tells whether its other end lives."""

import socket
from pathlib import Path

from phalanx.cluster.lifeline import Lifeline


def test_it_is_cut_when_the_other_end_is_gone_and_stays_so(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    line = Lifeline("it", path)
    assert not line.is_cut()
    other_end, _ = listener.accept()
    other_end.send(b"a greeting")
    assert not line.is_cut()
    listener.close()
    other_end.close()
    assert line.is_cut()
    (tmp_path / "s").unlink()
    with socket.socket(socket.AF_UNIX) as again:
        again.bind(path)
        again.listen()
        assert line.is_cut()
    line.close()


def test_who_hangs_up_on_the_silent_is_not_gone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        line = Lifeline("it", f"127.0.0.1:{listener.getsockname()[1]}")
        for _ in range(2):
            assert not line.is_cut()
            listener.accept()[0].close()
        assert not line.is_cut()
        line.close()


def test_one_that_may_be_away_can_come_back() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        line = Lifeline("it", f"127.0.0.1:{port}", away_s=3600)
        assert not line.is_cut()
        listener.accept()[0].close()
    assert not line.is_cut()
    line.close()
    gone = Lifeline("it", f"127.0.0.1:{port}", away_s=0)
    assert gone.is_cut()
