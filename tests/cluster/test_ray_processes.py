"""Ray in processes of its own: what is killed, refused or started again."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest

from phalanx.cluster.own_ray import LAST_WORDS
from phalanx.compiled.cache import cache_folder
from phalanx.training.checkpoint import load_checkpoint
from phalanx.training.config import TrainConfig
from phalanx.training.loop import train
from tests.leftovers import Marked

pytest.importorskip("ray", reason="Ray is not installed: pip install 'phalanx[ray]'")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Ray's own warnings


def test_a_machine_that_dies_is_resumed_to_the_same_weights(tmp_path: Path) -> None:
    """The learner, its Ray and all samplers are killed at once; a checkpoint is left."""
    whole = train(
        TrainConfig(
            num_envs=20, total_steps=20 * 25 * 60, update_steps=25, horizon=40, hidden=(16,),
            minibatch_size=200, checkpoint_every=2, k_epochs=2, output_dir=tmp_path, name="whole",
        )
    )  # fmt: skip
    flags = [
        "--n-envs", "20", "--update-steps", "25", "--horizon", "40", "--hidden", "16",
        "--minibatch-size", "200", "--checkpoint-every", "2", "--k-epochs", "2",
        "--num-samplers", "2", "--runner", "ray", "--algo", "ppo", "--output-dir", str(tmp_path),
    ]  # fmt: skip
    command = [sys.executable, "-m", "phalanx.cli.commands", "train", *flags]
    budget = ["--total-steps", str(20 * 25 * 60)]
    part = tmp_path / "part"
    with Marked() as marked:
        child = subprocess.Popen([*command, "--name", "part", *budget], env=marked.env)
        while not (part / "checkpoints" / "last.npz").exists():
            time.sleep(0.05)
            assert child.poll() is None
        marked.kill()
        child.wait()
        assert not (part / "summary.json").exists()
        (left,) = marked.temp.glob("phalanx*")  # nobody was there to remove it
        assert left.stat().st_mode & 0o777 == 0o700
        subprocess.run(
            [*command, "--resume", str(part), *budget], env=marked.env, check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        assert marked.left() == []
        assert list(marked.temp.iterdir()) == []  # those of the dead too
    arrays, _ = load_checkpoint(part / "checkpoints" / "last.npz")
    assert np.array_equal(arrays["theta"], whole.learner.stepper.save()[0]["theta"])


def test_our_own_ray_stays_on_loopback_can_be_started_twice_and_outlives_nobody() -> None:
    code = (
        "import os\n"
        "from phalanx.cluster.ray import connected\n"
        "for again in range(2):\n"
        "    with connected(None) as ray:\n"
        "        print(ray.get(ray.put(0)), ray.nodes()[0]['NodeManagerAddress'], flush=True)\n"
        "        if again: os.kill(os.getpid(), 9)"
    )
    with Marked() as marked:
        begun = [
            subprocess.Popen(
                [sys.executable, "-W", "ignore", "-c", before + code], env=marked.env, stdout=PIPE,
                stderr=PIPE,
            )
            for before in ("", "import ray; ")  # the settings of its first import stay
        ]  # fmt: skip
        for process in begun:
            said, last_words = process.communicate()
            assert said.decode().splitlines() == ["0 127.0.0.1"] * 2
            assert last_words.decode() == LAST_WORDS + "\n"
        assert marked.left(within_s=10) == []
        assert list(marked.temp.iterdir()) == []


OWN_RAY = """
import os, sys, tempfile
from phalanx.cluster.ray import connected

with connected(None) as ray:
    temporary = ray.get(ray.remote(lambda: tempfile.mkdtemp()).remote())
    print(ray.get_runtime_context().gcs_address, temporary, flush=True)
    sys.stdin.read()
left = [name for name in os.environ if name.startswith("RAY_AUTH")]
with connected(None) as ray:  # it can be started again all the same
    print(ray.get(ray.put(len(left))))
"""


def test_our_own_ray_wants_its_token_and_keeps_temporary_files_private(tmp_path: Path) -> None:
    with Marked() as marked:
        env = {name: value for name, value in marked.env.items() if "RAY_AUTH" not in name}
        env["HOME"] = str(tmp_path)  # no token lies there
        env["PHALANX_CACHE_DIR"] = str(cache_folder().parent)  # type: ignore[union-attr]
        start = [sys.executable, "-W", "ignore", "-c", OWN_RAY]
        with subprocess.Popen(start, env=env, stdin=PIPE, stdout=PIPE, text=True) as own:
            assert own.stdout
            address, temporary = own.stdout.readline().split()
            (folder,) = marked.temp.glob("phalanx*")
            assert folder in Path(temporary).parents
            assert folder.stat().st_mode & 0o777 == 0o700
            command = ["train", "--runner", "ray", "--ray-address", address, "--total-steps", "1"]
            other = subprocess.run(
                [sys.executable, "-m", "phalanx.cli.commands", *command], env=env, cwd=tmp_path,
                capture_output=True, text=True,
            )  # fmt: skip
            said, _ = own.communicate("")
        assert said == "0\n"  # no token is left in the environment
        assert other.returncode == 2
        assert "the cluster wants its token" in other.stderr
        assert own.returncode == 0
        assert marked.left() == []
        assert list(marked.temp.iterdir()) == []
    assert not (tmp_path / ".ray" / "auth_token").exists()


WITHOUT_RAYLET = """
import sys
from phalanx.training.config import TrainConfig
from phalanx.errors import WorkerError
from phalanx.training.loop import train

def kill(run):
    if run.updates == 2:
        import ray
        (raylet,) = ray._private.worker._global_node.all_processes["raylet"]
        raylet.process.kill()
        raylet.process.wait()

try:
    train(TrainConfig(
        num_envs=20, total_steps=20 * 25 * 60, update_steps=25, horizon=40, hidden=(16,),
        minibatch_size=200, k_epochs=2, num_samplers=2, runner="ray", algo="ppo", name="lost",
    ), on_update=kill)
except WorkerError as error:
    sys.exit(f"{error}")
"""


def test_a_lost_raylet_ends_the_run_in_one_line_with_all_that_was_learnt(tmp_path: Path) -> None:
    """And no process of Ray's imports from the current folder."""
    (tmp_path / "numba.py").write_text("open('imported', 'w').close()")
    script = tmp_path / "script" / "script.py"
    script.parent.mkdir()
    script.write_text(WITHOUT_RAYLET)
    with Marked() as marked:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", script], env=marked.env, cwd=tmp_path,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert marked.left(within_s=10) == []
        assert list(marked.temp.iterdir()) == []
    assert done.stderr.startswith("Ray is lost: its raylet on this machine was killed")
    assert done.stderr.count("\n") == 1
    assert done.stdout == "20 environments in 2 samplers on 1 node of Ray\n"
    facts = json.loads((tmp_path / "runs" / "lost" / "summary.json").read_text())
    assert (facts["state"], facts["updates"]) == ("failed", 2)
    _, saved = load_checkpoint(tmp_path / "runs" / "lost" / "checkpoints" / "last.npz")
    assert saved["updates"] == 2
    assert not (tmp_path / "imported").exists()


HEAD = """
from ray.cluster_utils import Cluster
nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
print(nodes.address, flush=True)
input()
"""


def test_a_head_that_stays_away_ends_the_run_in_one_line_and_it_is_saved(tmp_path: Path) -> None:
    flags = (
        "train --runner ray --num-samplers 1 --algo ppo --n-envs 20 --total-steps 1000000000 "
        "--update-steps 25 --horizon 40 --hidden 16 --minibatch-size 200 --checkpoint-every 2 "
        "--name lost"
    )
    lost = tmp_path / "runs" / "lost"
    with Marked() as marked:
        start = [sys.executable, "-W", "ignore", "-c", HEAD]
        with subprocess.Popen(start, env=marked.env, stdin=PIPE, stdout=PIPE) as nodes:
            assert nodes.stdout
            address = nodes.stdout.readline().decode().strip()
            command = [sys.executable, "-m", "phalanx.cli.commands", *flags.split()]
            with subprocess.Popen(
                [*command, "--ray-address", address], env=marked.env, cwd=tmp_path,
                stdout=subprocess.DEVNULL, stderr=PIPE, text=True,
            ) as learner:  # fmt: skip
                while not (lost / "checkpoints" / "last.npz").exists():
                    time.sleep(0.05)
                    assert learner.poll() is None
                (head,) = (
                    pid for pid, line in marked.processes().items() if "/gcs_server " in line
                )
                os.kill(head, signal.SIGKILL)
                try:
                    _, said = learner.communicate(timeout=600)
                finally:
                    marked.kill()
    *progress, last = said.splitlines()
    assert last.startswith("phalanx: Ray is lost: its head was killed")
    assert all(re.match(r"training |\d\d:\d\d:\d\d ", line) for line in progress)
    assert learner.returncode == 2
    facts = json.loads((lost / "summary.json").read_text())
    _, saved = load_checkpoint(lost / "checkpoints" / "last.npz")
    assert facts["state"] == "failed"
    assert facts["updates"] == saved["updates"]


def test_a_cluster_that_wants_another_token_says_so(tmp_path: Path) -> None:
    with Marked() as marked:
        start = [sys.executable, "-W", "ignore", "-c", HEAD]
        with subprocess.Popen(start, env=marked.env, stdin=PIPE, stdout=PIPE) as nodes:
            assert nodes.stdout
            address = nodes.stdout.readline().decode().strip()
            command = ["train", "--runner", "ray", "--ray-address", address]
            done = subprocess.run(
                [sys.executable, "-m", "phalanx.cli.commands", *command],
                env=marked.env | {"RAY_AUTH_TOKEN": "f" * 64}, cwd=tmp_path, capture_output=True,
            )  # fmt: skip
            nodes.communicate(b"\n")
    line = done.stderr.decode().strip()
    assert line.count("\n") == 0
    assert "the cluster wants its token" in line
    assert done.returncode == 2
    assert not list(tmp_path.glob("runs/*"))
