"""The command `phalanx bench`."""

from typing import Any

from phalanx.bench import clusters, learning, runners, sim
from phalanx.bench.config import BenchConfig


def main(config: BenchConfig) -> int:
    """The command: the simulator, training, the runners of environments, or a cluster."""
    special: dict[str, Any] = {"sim": sim, "runners": runners, "cluster": clusters}
    return int(special.get(config.what, learning).main(config))
