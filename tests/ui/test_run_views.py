"""The list of runs and their tables: whatever lies in the folder, and nothing outside it."""

import json
import shutil
from pathlib import Path
from urllib.parse import quote

import pytest

from phalanx.training.folder import RunFolder
from tests.show.run_folders import UPDATE, make_run, make_search, make_sweep, mark
from tests.ui.client import Client

HOSTILE = "<script>alert(1)</script>&\"'"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    outside = tmp_path_factory.mktemp("outside")
    make_run(outside / "secret")
    (outside / "secret.json").write_text('{"state": "finished", "episodes": 471147114711}')
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "first")
    make_run(folder / "killed", state=None)
    make_run(folder / HOSTILE.replace("/", "_"))
    make_search(folder / "search")
    make_sweep(folder / "sweep")
    mark(folder / "begun")
    broken = make_run(folder / "broken")
    for name in ("config.yaml", "summary.json", "updates.csv", "episodes.csv"):
        (broken / name).write_bytes(b"\xff\x00{[" * 100)
    linked = make_run(folder / "linked")
    for name, target in (("summary.json", "secret.json"), ("updates.csv", "secret/updates.csv")):
        (linked / name).unlink()
        (linked / name).symlink_to(outside / target)
    (folder / "elsewhere").symlink_to(outside / "secret")
    return folder


def test_every_run_is_listed_with_its_state(client: Client) -> None:
    answer = client.get("/api/runs").json
    states = {row["name"]: (row["kind"], row["state"]) for row in answer["runs"]}
    assert states["first"] == ("run", "finished")
    assert states["search"] == ("search", "finished")
    assert states["sweep"] == ("sweep", "finished")
    assert states["sweep/0-learning_rate=1e-3/seed=0"] == ("run", "finished")
    assert states["broken"] == ("run", "damaged")
    assert states["linked"] == ("run", "damaged")
    assert HOSTILE.replace("/", "_") in states
    assert "elsewhere" not in states
    assert "path" not in answer["runs"][0]
    assert "471147114711" not in json.dumps(answer)


def test_a_run_that_is_at_work_says_so(client: Client, folder: Path) -> None:
    at_work = RunFolder(folder / "working")
    try:
        assert client.get("/api/run?run=working").json["row"]["state"] == "running"
    finally:
        at_work.close()
    shutil.rmtree(folder / "working")
    assert client.get("/api/run?run=working").status == 404


def test_a_row_is_read_again_when_anything_in_its_folder_has_changed(
    client: Client, folder: Path
) -> None:
    def row() -> dict[str, object]:
        found: dict[str, object] = client.get("/api/run?run=changing").json["row"]
        return found

    make_run(folder / "changing", state=None, updates=3)
    assert (row()["state"], row()["updates"]) == ("crashed", 3)
    goes_on = RunFolder(folder / "changing", goes_on=True)
    assert row()["state"] == "running"
    goes_on.table("updates").add(UPDATE, [[4] * len(UPDATE)])
    goes_on.flush()
    assert row()["updates"] == 4
    goes_on.write_summary({"state": "finished", "updates": 5})
    goes_on.close()
    assert (row()["state"], row()["updates"]) == ("finished", 5)
    shutil.rmtree(folder / "changing")


def test_a_run_tells_its_settings_and_its_summary(client: Client) -> None:
    found = client.get("/api/run?run=first").json
    settings = {one["name"]: one for one in found["settings"]}
    assert settings["total_episodes"]["value"] == "120"
    changed = {name for name, one in settings.items() if one["changed"]}
    assert changed == {"total_episodes", "red_agent"}
    assert found["summary"]["state"] == "finished"
    for name in ("broken", "linked", "begun", "killed", "search", "sweep"):
        assert client.get(f"/api/run?run={name}").status == 200


def test_rows_of_a_running_training_come_as_they_are_written(client: Client, folder: Path) -> None:
    at_work = RunFolder(folder / "growing")
    try:
        assert client.get("/api/run/rows?run=growing").json["rows"] == []
        at_work.table("updates").add(UPDATE, [[k] * len(UPDATE) for k in (1, 2)])
        at_work.flush()
        found = client.get("/api/run/rows?run=growing").json
        assert found["names"] == list(UPDATE)
        assert [row[0] for row in found["rows"]] == [1, 2]
        at_work.table("updates").add(UPDATE, [[3] * len(UPDATE)])
        at_work.flush()
        found = client.get(f"/api/run/rows?run=growing&at={found['at']}").json
        assert [row[0] for row in found["rows"]] == [3]
    finally:
        at_work.close()


@pytest.mark.parametrize(
    "run",
    [
        "../outside/secret",
        "/etc",
        "..",
        ".",
        "",
        "elsewhere",
        "first/../../outside0/secret",
        "first/checkpoints",
        "FIRST",
        "first\0",
        "%2e%2e",
        "x" * 900,
    ],
)
def test_no_name_leads_out_of_the_folder(client: Client, run: str) -> None:
    for path in ("/api/run", "/api/run/rows"):
        assert client.get(f"{path}?run={quote(run, safe='')}").status == 404


def test_files_that_are_links_are_not_read(client: Client) -> None:
    assert client.get("/api/run/rows?run=linked").json["rows"] == []
    found = client.get("/api/run?run=linked").json
    assert found["summary"] == {}
    assert found["row"]["note"] == "summary.json is a link, which is not followed"


def test_a_folder_that_becomes_a_link_is_no_run_any_more(client: Client, folder: Path) -> None:
    make_run(folder / "moved")
    assert client.get("/api/run?run=moved").status == 200
    (folder / "moved").rename(folder / "moved-away")
    (folder / "moved").symlink_to(folder / "first")
    assert client.get("/api/run?run=moved").status == 404
    (folder / "moved").unlink()


@pytest.mark.parametrize("table", ["config.yaml", "../first/updates", "summary", ""])
def test_a_run_has_three_tables_and_no_other(client: Client, table: str) -> None:
    assert client.get(f"/api/run/rows?run=first&table={quote(table)}").status == 404


def test_what_nobody_understands_is_one_line(client: Client) -> None:
    assert client.get("/api/run").json == {"error": "run is missing"}
    assert client.get("/api/run?run=first&x=1").json == {"error": "nobody asked for x"}
    assert client.get(f"/api/run?run={'x' * 1001}").status == 400
