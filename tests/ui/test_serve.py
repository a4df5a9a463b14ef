"""`phalanx ui` prints one address, ends on Ctrl-C, and says in one line what it cannot do."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from phalanx.cli.commands import main
from phalanx.ui.serve import serving

WITHOUT = """
import sys
for name in ("uvicorn", "starlette"):
    sys.modules[name] = None
from phalanx.cli.commands import main
sys.exit(main(["ui", sys.argv[1], "--no-open"]))
"""
RUN = [sys.executable, "-m", "phalanx", "ui"]


def test_it_prints_one_address_and_ends_well_on_ctrl_c(tmp_path: Path) -> None:
    ran = subprocess.Popen(
        [*RUN, str(tmp_path), "--no-open"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert ran.stdout is not None
    line = ran.stdout.readline()
    assert re.fullmatch(
        r"phalanx ui: http://127\.0\.0\.1:\d+/\?token=[\w-]{43}  \(Ctrl-C ends it\)\n", line
    )
    port = int(re.findall(r":(\d+)/", line)[0])
    with socket.create_connection(("127.0.0.1", port)):  # somebody who has nothing to say
        ran.send_signal(signal.SIGINT)
        out, err = ran.communicate(timeout=600)
    assert (out, err, ran.returncode) == ("", "", 0)


def test_ctrl_c_does_not_wait_for_what_is_being_computed(tmp_path: Path) -> None:
    ran = subprocess.Popen(
        [*RUN, str(tmp_path), "--no-open"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert ran.stdout is not None
    port, token = re.findall(r":(\d+)/\?token=([\w-]+)", ran.stdout.readline())[0]
    asked = http.client.HTTPConnection("127.0.0.1", int(port), timeout=600)
    headers = {"x-phalanx-token": token, "content-type": "application/json"}
    long = {"policy": "champion", "horizon": 1000, "pick": "worst", "of": 10_000}  # many minutes
    asked.request("POST", "/api/replays", json.dumps(long), headers)
    job = json.loads(asked.getresponse().read())
    while job["state"] == "waiting":
        asked.request("GET", f"/api/jobs/{job['id']}", headers=headers)
        job = json.loads(asked.getresponse().read())
    assert job["state"] == "working"
    asked.close()
    ran.send_signal(signal.SIGINT)
    out, err = ran.communicate(timeout=600)
    assert (out, ran.returncode) == ("", 0)
    assert "Traceback" not in err


def test_without_a_server_it_says_what_to_install(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    said = "phalanx: the web app needs a server: pip install 'phalanx[ui]'\n"
    assert (ran.stdout, ran.stderr, ran.returncode) == ("", said, 2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["{tmp}/nowhere"], "there is no folder {tmp}/nowhere"),
        (["{tmp}/file"], "{tmp}/file is no folder"),
        (["{tmp}", "--port", "65536"], "port must be from 0 to 65,535"),
        (["{tmp}", "--host", "0.0.0.0"], "unknown option --host for phalanx ui"),
    ],
)
def test_what_cannot_work_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: list[str], said: str
) -> None:
    (tmp_path / "file").touch()
    assert main(["ui", *(word.format(tmp=tmp_path) for word in given), "--no-open"]) == 2
    error = capsys.readouterr().err
    assert said.format(tmp=tmp_path) in error
    assert error.count("\n") == 1


def test_a_port_that_is_taken_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(tmp_path) as served:
        assert main(["ui", str(tmp_path), "--port", str(served.port), "--no-open"]) == 2
    assert "give another --port" in capsys.readouterr().err


def test_asking_for_help_needs_no_compiler_and_no_server() -> None:
    code = "import sys, phalanx.ui.config; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numba", "uvicorn", "starlette"} & set(ran.stdout.split())
