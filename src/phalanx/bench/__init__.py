"""How fast phalanx is: figures and ratios, measured side by side in one run."""

from phalanx.config import BenchConfig


def main(config: BenchConfig) -> int:
    """The command: the simulator, training, or the runners of environments."""
    from phalanx.bench import learning, runners, sim

    return {"sim": sim, "runners": runners}.get(config.what, learning).main(config)
