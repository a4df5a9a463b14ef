"""Ray in processes of its own: what is killed, refused or started again."""

import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest

from phalanx.checkpoint import load_checkpoint
from phalanx.config import TrainConfig
from phalanx.training import train
from tests.leftovers import Marked

pytest.importorskip("ray", reason="Ray is not installed: pip install 'phalanx[ray]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own


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
    command = [sys.executable, "-m", "phalanx.cli", "train", *flags]
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
        subprocess.run(
            [*command, "--resume", str(part), *budget], env=marked.env, check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        assert marked.left() == []
    arrays, _ = load_checkpoint(part / "checkpoints" / "last.npz")
    assert np.array_equal(arrays["theta"], whole.learner.stepper.policy.theta)


def test_our_own_ray_can_be_started_twice_and_stays_on_loopback() -> None:
    code = (
        "from phalanx.cluster import connected\n"
        "for _ in range(2):\n"
        "    with connected(None) as ray:\n"
        "        print(ray.get(ray.put(0)), ray.nodes()[0]['NodeManagerAddress'])"
    )
    begun = [
        subprocess.Popen([sys.executable, "-W", "ignore", "-c", before + code], stdout=PIPE)
        for before in ("", "import ray; ")  # the settings of its first import stay
    ]
    for process in begun:
        said, _ = process.communicate()
        assert said.decode().splitlines() == ["0 127.0.0.1"] * 2


def test_a_cluster_that_wants_another_token_says_so(tmp_path: Path) -> None:
    head = (
        "from ray.cluster_utils import Cluster\n"
        "nodes = Cluster(initialize_head=True, head_node_args={'num_cpus': 1})\n"
        "print(nodes.address, flush=True); input()"
    )
    with Marked() as marked:
        start = [sys.executable, "-W", "ignore", "-c", head]
        with subprocess.Popen(start, env=marked.env, stdin=PIPE, stdout=PIPE) as nodes:
            assert nodes.stdout
            address = nodes.stdout.readline().decode().strip()
            command = ["train", "--runner", "ray", "--ray-address", address]
            done = subprocess.run(
                [sys.executable, "-m", "phalanx.cli", *command],
                env=marked.env | {"RAY_AUTH_TOKEN": "f" * 64}, cwd=tmp_path, capture_output=True,
            )  # fmt: skip
            nodes.communicate(b"\n")
    line = done.stderr.decode().strip()
    assert line.count("\n") == 0
    assert "the cluster wants its token" in line
    assert done.returncode == 2
    assert not list(tmp_path.glob("runs/*"))
