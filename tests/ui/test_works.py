"""Reports, comparisons and scores are made aside, and pages of them are strangers to the app."""

import time
from pathlib import Path
from typing import Any

import pytest

from phalanx.agents import AGENTS
from tests.show.run_folders import make_run
from tests.ui.client import Client

HOSTILE = "<script>window.stolen = 1<_script>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name in ("first", HOSTILE):
        make_run(folder / name)
    played = make_run(folder / "champion-like")
    (played / "checkpoints" / "last.npz").write_bytes(AGENTS["champion"].read_bytes())
    linked = make_run(folder / "linked")
    (linked / "episodes.csv").unlink()
    (linked / "episodes.csv").symlink_to(folder / "first" / "episodes.csv")
    return folder


def ready(client: Client, job: Any) -> Any:
    end = time.monotonic() + 300
    while job["state"] in ("waiting", "working"):
        assert time.monotonic() < end
        time.sleep(0.1)
        job = client.get(f"/api/jobs/{job['id']}").json
    return job


def test_a_report_is_a_page_of_its_own(client: Client) -> None:
    job = ready(client, client.post("/api/reports", {"runs": [HOSTILE]}).json)
    assert job["state"] == "ready", job
    answer = client.get(f"/pages/{job['id']}")
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "sandbox allow-scripts" in policy  # its origin is none: the app's cookie is not its own
    assert "allow-same-origin" not in policy
    assert "connect-src" not in policy
    assert b"window.stolen" in answer.body
    assert b"<script>window.stolen" not in answer.body


def test_a_comparison_needs_two_runs(client: Client) -> None:
    assert client.post("/api/comparisons", {"runs": ["first"]}).status == 400
    assert client.post("/api/comparisons", {"runs": ["first", "first"]}).status == 400
    job = ready(client, client.post("/api/comparisons", {"runs": ["first", HOSTILE]}).json)
    assert job["state"] in ("ready", "failed")  # these runs have no policies to play
    if job["state"] == "ready":
        assert b"Comparison of 2" in client.get(f"/pages/{job['id']}").body
    else:
        assert job["error"]


@pytest.mark.parametrize("path", ["/api/reports", "/api/comparisons"])
@pytest.mark.parametrize("runs", [[], ["nothing"], ["../first"], ["linked", "first"], "first", [1]])
def test_what_is_no_run_is_refused(client: Client, path: str, runs: Any) -> None:
    assert client.post(path, {"runs": runs}).status in (400, 404)


def test_a_policy_is_scored_beside_the_published(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phalanx.ui.works.EPISODES", 100)
    job = ready(client, client.post("/api/scores", {"run": "champion-like"}).json)
    assert job["state"] == "ready", job
    told = client.get(f"/api/jobs/{job['id']}/result").json
    assert len(told["cells"]) == 9
    assert -46 < told["total"] < -37  # -41.34, as docs/champion.md has it
    assert told["total"] == pytest.approx(sum(cell["mean"] for cell in told["cells"]))
    assert told["cells"][0]["published"] == [-3.47, -3.48, -3.53]
    assert client.get(f"/pages/{job['id']}").status == 400  # no page


@pytest.mark.parametrize("run", ["first", "linked", "nothing"])
def test_what_has_no_policy_is_not_scored(client: Client, run: str) -> None:
    assert client.post("/api/scores", {"run": run}).status in (400, 404)
