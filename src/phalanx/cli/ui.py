"""The command `phalanx ui`: runs, replays and a game to play, in a browser on this machine."""

from phalanx.ui.config import UiConfig
from phalanx.ui.serve import run


def main(config: UiConfig) -> int:
    """The command: one line with the address, and then it answers until Ctrl-C."""
    run(config, lambda line: print(line, flush=True))
    return 0
