"""How fast phalanx is: figures and ratios, measured side by side in one run."""

from phalanx.config import BenchConfig


def main(config: BenchConfig) -> int:
    """The command: the simulator, or training."""
    from phalanx.bench import learning, sim

    return (sim if config.what == "sim" else learning).main(config)
