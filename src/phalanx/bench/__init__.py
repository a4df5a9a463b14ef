"""How fast phalanx is: figures and ratios, measured side by side in one run."""

from typing import Any

from phalanx.training.config import BenchConfig


def main(config: BenchConfig) -> int:
    """The command: the simulator, training, the runners of environments, or a cluster."""
    from phalanx.bench import clusters, learning, runners, sim

    special: dict[str, Any] = {"sim": sim, "runners": runners, "cluster": clusters}
    return int(special.get(config.what, learning).main(config))
