"""Samplers on a Ray cluster: the same weights as here, and nodes may die."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phalanx
from phalanx.cage2.rules.scoring import NO_ORDERS
from phalanx.cli.commands import main
from phalanx.cluster.ray import count_cpus
from phalanx.cluster.samplers import Player, RemoteSampler, Together
from phalanx.envs.faults import FaultLog
from phalanx.errors import ConfigError, MissingError, WorkerError
from phalanx.learn.cage2.collect import collect_blocks
from phalanx.learn.rollout import Rollout, empty_rollout
from phalanx.search.config import SearchConfig
from phalanx.search.search import search
from phalanx.training.cage2_extension import Cage2Extension
from phalanx.training.checkpoint import load_checkpoint
from phalanx.training.config import TrainConfig
from phalanx.training.loop import train
from phalanx.training.on_cage2 import make_policy
from phalanx.training.run import Run

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'phalanx[ray]'")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Ray's own warnings

SMALL: dict[str, Any] = {
    "num_envs": 20, "total_steps": 20 * 25 * 6, "update_steps": 25, "horizon": 40, "hidden": (16,),
    "minibatch_size": 200, "checkpoint_every": 2, "k_epochs": 2, "num_samplers": 2, "algo": "ppo",
}  # fmt: skip


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several samplers on a busy machine take minutes to start."""
    monkeypatch.setattr("phalanx.cluster.samplers.START_S", 600.0)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Three nodes on this machine, each with processes and an id of its own.

    They start processes when they need them, and none in advance.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    system = {"prestart_worker_first_driver": False}
    options = {"num_cpus": 1, "include_dashboard": False, "_system_config": system}
    nodes = Cluster(initialize_head=True, head_node_args=options)
    for _ in range(2):
        nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    yield nodes
    ray.shutdown()
    nodes.shutdown()


def small(tmp_path: Path, name: str, **changes: Any) -> TrainConfig:
    return TrainConfig(**{**SMALL, "output_dir": tmp_path, "name": name, **changes})


def theta(run: Run) -> Any:
    return run.learner.save()[0]["theta"]


def test_the_layout_of_samplers_does_not_change_a_bit(cluster: Any, tmp_path: Path) -> None:
    local = train(small(tmp_path, "local"))
    for samplers in (1, 3):  # 20 environments, or 6, 7 and 7
        config = small(tmp_path, f"{samplers}", runner="ray", num_samplers=samplers)
        run = train(config)
        assert np.array_equal(theta(run), theta(local))
        assert all(part.running.flags.owndata for part in run.sampler.parts)  # none in the store
        assert run.recipe.note.startswith(f"20 environments in {samplers} samplers")


def test_workflows_and_their_prices_reach_the_samplers(cluster: Any, tmp_path: Path) -> None:
    changes: dict[str, Any] = {"workflow": "all", "alignment": "gate", "gate_start": 0.2}
    changes["defiance"] = 3.0
    local = train(small(tmp_path, "local", **changes))
    far = train(small(tmp_path, "far", runner="ray", **changes))
    assert np.array_equal(theta(far), theta(local))


def test_a_stopped_run_resumes_exactly(cluster: Any, tmp_path: Path) -> None:
    whole = train(small(tmp_path, "whole"))

    def stop(run: Run) -> None:
        if run.updates == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(small(tmp_path, "part", runner="ray", num_samplers=2), on_update=stop)
    again = train(small(tmp_path, "part", runner="ray", num_samplers=2, resume=tmp_path / "part"))
    assert np.array_equal(theta(whole), theta(again))


@pytest.mark.parametrize("algo", ["ppo", "impala"])
def test_a_killed_sampler_comes_back_and_its_loss_is_logged(
    cluster: Any, tmp_path: Path, algo: str
) -> None:
    killed = False

    def kill(run: Run) -> None:
        nonlocal killed
        parts = [part for top in run.source.samplers for part in top.parts]
        if run.updates == 2 and not killed:
            killed = True
            os.kill(ray.get(parts[-1].actor.describe.remote())["pid"], signal.SIGKILL)
        run.enough = bool(run.sampler.faults) and not parts[-1].is_down
        time.sleep(0.1)  # leave the cores to the one that starts again

    config = small(tmp_path, algo, runner="ray", algo=algo, total_steps=10_000_000, num_samplers=3)
    run = train(config, on_update=kill)
    assert run.enough  # it played again long before the budget was spent
    (fault,) = run.sampler.faults
    assert fault.lost == tuple(range(13, 20))  # of 6, 7 and 7 environments
    rows = read_faults(tmp_path / algo)
    assert len(rows) == 1
    assert "was lost" in rows[0]["what"]
    facts = json.loads((tmp_path / algo / "summary.json").read_text())
    counted = facts["rollouts"]
    assert counted["received"] == counted["learnt"] + counted["dropped"]
    assert counted["learnt"] == run.updates


def test_more_losses_than_restarts_end_the_run_and_it_is_saved(
    cluster: Any, tmp_path: Path
) -> None:
    def kill(run: Run) -> None:
        if run.updates == 2:
            pid = ray.get(run.sampler.parts[0].actor.describe.remote())["pid"]
            os.kill(pid, signal.SIGKILL)

    config = small(tmp_path, "x", runner="ray", max_restarts=0, total_steps=10_000_000)
    with pytest.raises(WorkerError, match=r"1 failures, and max_restarts is 0; .*sampler 0 was lo"):
        train(config, on_update=kill)
    facts = json.loads((tmp_path / "x" / "summary.json").read_text())
    _, saved = load_checkpoint(tmp_path / "x" / "checkpoints" / "last.npz")
    assert facts["state"] == "failed"
    assert facts["updates"] == saved["updates"] >= 2


class Part:
    """A sampler of one column that has its number everywhere, or is lost."""

    def __init__(self, index: int, is_down: bool = False) -> None:
        self.index, self.is_down = index, is_down

    def ask(self, shaping: Any, prices: Any) -> None: ...

    def answer(self, wait_s: float) -> Rollout | None:
        if self.is_down:
            return None
        rollout = empty_rollout(2, np.zeros((1, 3), np.float32), 0, 4)
        rollout.versions[:] = self.index
        return rollout


def test_ppo_goes_on_with_the_columns_of_those_that_are_not_lost() -> None:
    parts: Any = [Part(0), Part(1), Part(2, is_down=True), Part(3)]
    together = Together(parts, NO_ORDERS, FaultLog(0, None))
    until = time.monotonic() + 10
    together.stop = lambda: time.monotonic() > until
    assert together.collect(None).versions.tolist() == [0, 1, 3]
    parts[2].is_down = False
    assert together.collect(None).versions.tolist() == [0, 1, 2, 3]


def test_a_sampler_that_dies_while_it_starts_is_asked_again(cluster: Any, tmp_path: Path) -> None:
    class Mortal:
        def __init__(self, died: Path) -> None:
            self.died = died

        def describe(self) -> dict[str, Any]:
            if not self.died.exists():
                self.died.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return {"pid": os.getpid()}

    actor = ray.remote(max_restarts=-1)(Mortal).remote(tmp_path / "died")
    log = FaultLog(1, None)
    sampler = RemoteSampler(actor, 1, range(5, 10), {}, log)
    sampler.wait_until_open(time.monotonic() + 60)
    assert sampler.facts["pid"] > 0
    (fault,) = log.faults
    assert fault.what.startswith("sampler 1 was lost")
    assert not sampler.is_down


def test_a_node_that_dies_costs_its_samplers_an_episode(cluster: Any, tmp_path: Path) -> None:
    node = cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
    killed = False

    def kill(run: Run) -> None:
        nonlocal killed
        if run.updates == 2 and not killed:
            killed = True
            cluster.remove_node(node, allow_graceful=False)

    config = small(
        tmp_path, "node", runner="ray", num_samplers=4, cpus_per_sampler=1, total_steps=20 * 25 * 40
    )  # one for each of the three nodes that stay
    run = train(config, on_update=kill)
    assert run.progress >= 1
    assert run.faults_recorded >= 1


def test_a_slow_learner_slows_its_samplers_down(cluster: Any, tmp_path: Path) -> None:
    played: list[int] = []

    def think(run: Run) -> None:
        time.sleep(0.3)
        played[:] = [
            ray.get(sampler.parts[0].actor.describe.remote())["played"]
            for sampler in run.source.samplers
        ]
        assert sum(played) <= run.updates + 2 * len(played)  # one under way, one ahead

    config = small(tmp_path, "slow", runner="ray", algo="impala", num_samplers=2)
    run = train(config, on_update=think)
    assert sum(played) >= run.updates > 3


def test_other_environments_are_played_on_the_cluster(cluster: Any, tmp_path: Path) -> None:
    config = TrainConfig(
        env="CartPole-v1", runner="ray", num_samplers=2, num_envs_per_worker=4, num_workers=0,
        total_steps=2000, update_steps=50, output_dir=tmp_path, name="pole",
    )  # fmt: skip
    run = train(config)
    assert run.episodes > 20
    assert config.num_envs == 8


def test_what_fails_in_the_environments_of_samplers_is_logged_as_here(
    cluster: Any, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {
        "env": "tests.odd_envs:Raises", "runner": "ray", "algo": "ppo", "num_samplers": 2,
        "num_envs": 4, "num_workers": 0, "update_steps": 20, "total_steps": 160,
        "output_dir": tmp_path,
    }  # fmt: skip
    run = train(TrainConfig(**settings, name="many", max_restarts=10_000))
    rows = read_faults(tmp_path / "many")
    assert len(rows) == run.faults_recorded > 10
    assert {row["env"] for row in rows} == {"0", "1", "2", "3"}  # as numbered in the whole run
    assert any(row["what"].startswith("sampler 1: environment 1 failed") for row in rows)
    assert all("the reactor is on fire" in row["traceback"] for row in rows)
    with pytest.raises(WorkerError, match=r"4 failures, and max_restarts is 3; .*sampler"):
        train(TrainConfig(**settings, name="few", max_restarts=3))
    assert len(read_faults(tmp_path / "few")) == 4


def read_faults(path: Path) -> list[dict[str, str]]:
    with (path / "faults.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("policy", ["shared", "separate"])
def test_orders_are_tried_at_the_same_time_all_over_the_cluster(
    cluster: Any, tmp_path: Path, policy: str
) -> None:
    config = SearchConfig(
        runner="ray", num_samplers=2, policy=policy, output_dir=tmp_path, name=policy, num_envs=40,
        horizon=20, update_steps=20, hidden=(8,), observation="bits", total_episodes=2000,
        measure_episodes=60, finalists=3, final_episodes=50, confirm_episodes=80, k_epochs=1,
        minibatch_size=400, compliance_threshold=0.05, max_episodes=80, finish_share=0.2,
        school_share=0.3, baseline=False,
    )  # fmt: skip
    done = search(config)
    assert len(done.visits) > count_cpus()  # more than once as many as can be tried at a time
    assert len({visit.workflow for visit in done.visits}) == len(done.visits)
    assert done.episodes <= 2000 + 40
    if policy == "separate":
        assert all(visit.trained_episodes > 0 for visit in done.visits)
        with (tmp_path / policy / "updates.csv").open() as file:
            phases = {row["phase"] for row in csv.DictReader(file)}
        assert "own training" in phases
    assert done.winner is not None


def test_an_environment_that_cannot_be_opened_is_named(cluster: Any, tmp_path: Path) -> None:
    config = TrainConfig(
        env="no_such_module:make", runner="ray", num_samplers=2, num_envs=4, output_dir=tmp_path,
        name="x",
    )  # fmt: skip
    with pytest.raises(WorkerError, match=r"sampler 0 on node \w+: .*no_such_module"):
        train(config)


def test_another_phalanx_on_a_node_is_named(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = phalanx.__version__
    monkeypatch.setattr(phalanx, "__version__", "9.9")
    with pytest.raises(ConfigError, match=rf"node \w+ has phalanx {there}, this is 9.9"):
        train(small(tmp_path, "other", runner="ray", num_samplers=1))


def test_another_ray_is_named(cluster: Any) -> None:
    code = (
        "import ray; ray.__version__ = '0.1'\n"
        "from phalanx.cli.commands import main\n"
        f"main('train --runner ray --ray-address {cluster.address}'.split())"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True)
    line = done.stderr.decode().strip()
    assert line.count("\n") == 0
    assert ray.__version__ in line
    assert "0.1" in line


def test_read_only_arrays_of_the_object_store_are_not_compiled_for(tmp_path: Path) -> None:
    config = small(tmp_path, "x", num_samplers=1)
    player = Player(config, 0)
    weights, shaped = make_policy(config).theta, Cage2Extension(config).shaping(0.0)
    player.collect(weights, 0, shaped, None)
    before = len(collect_blocks.signatures)  # type: ignore[attr-defined]
    shaped.weights.flags.writeable = weights.flags.writeable = False
    player.collect(weights, 1, shaped, None)
    assert len(collect_blocks.signatures) == before  # type: ignore[attr-defined]


def test_samplers_are_out_of_step_unless_told_otherwise() -> None:
    assert TrainConfig(runner="ray").algo == "impala"
    assert TrainConfig(runner="ray", algo="ppo").algo == TrainConfig().algo == "ppo"
    assert SearchConfig(runner="ray").algo == "ppo"


def test_more_cpus_than_there_are_is_said_at_once(cluster: Any, tmp_path: Path) -> None:
    config = small(tmp_path, "x", runner="ray", num_samplers=20, cpus_per_sampler=50)
    with pytest.raises(ConfigError, match=r"need 1000, but the cluster has \d+"):
        train(config)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--ray-address", "127.0.0.1:6379"], "it is for --runner ray"),
        (["--runner", "rays"], "did you mean ray"),
        (["--runner", "ray", "--algo", "a3c", "--env", "CartPole-v1"], "ppo or impala"),
        (["--runner", "ray", "--cpus-per-sampler", "0"], "cpus_per_sampler must be more than 0"),
    ],
)
def test_bad_flags_get_one_line(
    flags: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["train", "--output-dir", str(tmp_path / "runs"), *flags]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_an_address_where_nobody_listens_is_said_at_once() -> None:
    from phalanx.cluster.ray import check_that_somebody_listens

    with pytest.raises(ConfigError, match="nobody listens there"):
        check_that_somebody_listens("127.0.0.1:9")
    with pytest.raises(ConfigError, match="give auto or HOST:PORT"):
        check_that_somebody_listens("nowhere")


def test_without_ray_the_way_to_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from phalanx.cluster.ray import import_ray

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingError, match=r"phalanx\[ray\]"):
        import_ray()
