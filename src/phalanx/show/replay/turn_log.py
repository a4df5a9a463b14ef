"""What happened in a turn: it is played once more on a copy of the record, and told in full."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.batch_turn import LOG, replay_turn
from phalanx.cage2.rules.green import green_host
from phalanx.cage2.rules.network import TRUE, Networks, high_die, low_die, turn_dice
from phalanx.cage2.rules.red_actions import SWEEP
from phalanx.cage2.rules.scenario import NO_HOST
from phalanx.cage2.rules.world import Worlds
from phalanx.compiled.rule import kernel, records
from phalanx.show.replay.place import Place

Dice = npt.NDArray[
    np.int64
]  # [N, 3] for target, exploit and detection, or [N, 4] with green's host
ACTIVITY = 3  # the bits of blue's table that tell of activity


class Turn(NamedTuple):
    """A turn as the rules played it."""

    place: Place
    action: int
    before: np.void  # records of networks
    after: np.void
    tenths: int  # what it cost
    decoy: int  # host on which blue's decoy was placed, or NO_HOST
    move: int  # red's
    target: int  # a host, a subnet for a sweep, or NO_HOST
    exploit: int  # or NO_EXPLOIT
    green: int  # host that green scanned, or NO_HOST

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
        return self.shown_on(self.target_host)

    def shown_on(self, host: int) -> int:
        """The same on any host."""
        return 0 if host == NO_HOST else int(self.place.shown(self.after)[host]) & ACTIVITY

    @property
    def costs(self) -> list[tuple[str, int, int]]:
        """Tenths by cause and host (-1: none); they sum to what the turn cost."""
        return self.place.costs(self.action, self.after)


@kernel
def roll(worlds: Worlds, nets: Networks, dice: Dice) -> None:
    """The dice of each network's next turn, as `replay_turn` takes them."""
    for i in range(len(nets)):
        first, second = turn_dice(nets[i])
        dice[i, 0] = low_die(first)
        dice[i, 1] = high_die(first)
        dice[i, 2] = low_die(second)
        dice[i, 3] = green_host(worlds[nets[i].world], nets[i])


def play_and_tell(nets: Networks, action: int, place: Place, dice: Dice | None = None) -> Turn:
    """Play a turn of the one network in `nets`, which it changes.

    dice: loaded ones [1, 3] or [1, 4], if not its own.
    """
    if dice is None:
        dice = np.zeros((1, 4), np.int64)
        roll(place.worlds, nets, dice)
    before, log = nets.copy(), records(1, LOG)
    replay_turn(place.worlds, nets, np.ones(1, np.bool_), np.array([action]), dice, log)
    told = (int(log[name][0]) for name in ("cost", "decoy", "red", "target", "exploit", "green"))
    return Turn(place, action, before[0], nets[0].copy(), *told)
