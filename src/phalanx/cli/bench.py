"""The command `phalanx bench`."""

from types import ModuleType

from phalanx.bench import beside, clusters, learning, runners, sim
from phalanx.bench.config import BenchConfig


def main(config: BenchConfig) -> int:
    """The command: the simulator, training, the runners of environments, or a cluster."""
    if config.beside is not None:
        return beside.main(config)
    special: dict[str, ModuleType] = {"sim": sim, "runners": runners, "cluster": clusters}
    return int(special.get(config.what, learning).main(config))
