"""What happened in a turn: it is played once more on a copy of the record, and told in full."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.attackers import EXPLOIT, SWEEP
from phalanx.cage2.rules.batch_turn import LOG, replay_turn
from phalanx.cage2.rules.network import RUNNING, TRUE, Networks, high_die, low_die, turn_dice
from phalanx.cage2.rules.scenario import (
    HOST_OF_ACTION,
    NO_HOST,
    NUM_HOSTS,
    RESTORE,
    RESTORE_COST,
    ROOT_COST,
    SERVICE_DOWN_COST,
    VERB_OF_ACTION,
)
from phalanx.cage2.scenario.read import CAGE2_WORLDS
from phalanx.compiled.rule import kernel, records

Dice = npt.NDArray[np.int64]  # [N, 3] for target, exploit and detection


class Turn(NamedTuple):
    """A turn as the rules played it."""

    action: int
    before: Any  # records of NETWORK
    after: Any
    tenths: int  # what it cost
    decoy: int  # host on which blue's decoy was placed, or NO_HOST
    move: int  # red's
    target: int  # a host, a subnet for a sweep, or NO_HOST
    exploit: int  # or NO_EXPLOIT

    @property
    def target_host(self) -> int:
        return NO_HOST if self.move == SWEEP else self.target

    @property
    def succeeded(self) -> bool:
        """Whether red's move did."""
        return bool(self.after["succeeded"] == TRUE)

    @property
    def shown(self) -> int:
        """The activity that blue was shown on red's target: 0 none, 1 scan, 3 exploit."""
        host = self.target_host
        return 0 if host == NO_HOST else int(self.after["seen"][0]) >> (4 * host) & 3

    @property
    def costs(self) -> list[tuple[str, int, int]]:
        """Tenths by cause and host (-1: none); they sum to what the turn cost."""
        held = int(self.after["root"])
        parts = [
            ("root", host, int(ROOT_COST[host]))
            for host in range(NUM_HOSTS)
            if held >> host & 1 and ROOT_COST[host]
        ]
        if VERB_OF_ACTION[self.action] == RESTORE:
            parts.append(("restore", int(HOST_OF_ACTION[self.action]), RESTORE_COST))
        if not int(self.after["service"]) & RUNNING:
            parts.append(("service", NO_HOST, SERVICE_DOWN_COST))
        return parts

    @property
    def is_exploit(self) -> bool:
        return self.move == EXPLOIT


@kernel
def roll(nets: Networks, dice: Any) -> None:
    """The dice of each network's next turn, as `replay_turn` takes them."""
    for i in range(len(nets)):
        first, second = turn_dice(nets[i])
        dice[i, 0] = low_die(first)
        dice[i, 1] = high_die(first)
        dice[i, 2] = low_die(second)


def play_and_tell(nets: Networks, action: int, dice: Dice | None = None) -> Turn:
    """Play a turn of the one network in `nets`, which goes on by it.

    dice: loaded ones [1, 3], if not its own.
    """
    if dice is None:
        dice = np.zeros((1, 3), np.int64)
        roll(nets, dice)
    before, log = nets.copy(), records(1, LOG)
    replay_turn(CAGE2_WORLDS, nets, np.ones(1, np.bool_), np.array([action]), dice, log)
    told = (int(log[name][0]) for name in ("cost", "decoy", "red", "target", "exploit"))
    return Turn(action, before[0], nets[0].copy(), *told)
