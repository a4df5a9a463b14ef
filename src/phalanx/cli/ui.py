"""The command `phalanx ui`: runs, replays and a game to play, in a browser on this machine."""

from phalanx.ui.busy import is_busy, leave_at_once
from phalanx.ui.config import UiConfig
from phalanx.ui.serve import run


def main(config: UiConfig) -> int:
    """The command: one line with the address, and then it answers until Ctrl-C."""
    run(config, lambda line: print(line, flush=True))
    if is_busy():
        leave_at_once(0)
    return 0
