"""What blue can know of the hidden state: every state that explains what it saw, with its chance.

The game's hidden chances are few: who attacks, and in each turn which target, which exploit,
whether the new shell was seen, and what green scanned. So the exact posterior is short. For each
state that is still possible all outcomes of the dice are played with loaded dice; what does not
show the bits that blue was shown is left out, and equal states become one.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba.extending import overload

from phalanx.cage2.rules.attackers import plan_move
from phalanx.cage2.rules.green import green_outcome, green_outcomes
from phalanx.cage2.rules.hidden import add_hidden, add_shared
from phalanx.cage2.rules.network import LOADED, NETWORK, Network, Networks
from phalanx.cage2.rules.observation import EXPLOIT_SEEN, NO_ACTIVITY, Seen, shown_of
from phalanx.cage2.rules.red import SEEN_SHARE, chance_of_exploit, exploits_against
from phalanx.cage2.rules.red_actions import EXPLOIT, RED_SLEEP
from phalanx.cage2.rules.scenario import COIN, NO_HOST
from phalanx.cage2.rules.surprise import differing_hosts, take_at_its_word
from phalanx.cage2.rules.turn import begin_turn, end_turn, red_acts
from phalanx.cage2.rules.world import World, Worlds, hosts_in
from phalanx.compiled.bits import count, lowest, number
from phalanx.compiled.rule import Record, kernel, large_rule, records, rule
from phalanx.compiled.spread import BytesOrFloats

CAPACITY = 64  # states that a belief holds; the challenge's attackers leave a few possible
PLANNED = CAPACITY  # where a state stands after blue's move, with red's move planned
ROOM = CAPACITY + 2  # that one, and one after red's move
SHARED, DIFFERING = PLANNED, PLANNED + 1  # there, while a belief is written: bits of all its states
OWN = DIFFERING  # ... in the other half: those that differ, as one state has them
ANYTHING = -1  # in place of a number of wrong hosts: whatever is seen then
MANY_SURPRISES = 4
ROUNDING = 1e-9  # of a state's chance
WORDS = NETWORK.itemsize // 8  # of a state of CAGE-2
ODD, HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
SEEN_SHELL, UNSEEN_SHELL = 0, LOADED - 1  # dice of detection

Words = npt.NDArray[np.uint64]  # of a state, or of several
Turn = tuple[int, int, int, Seen, int]  # move, malware, new decoy, what is seen, wrong hosts

STANDING = np.dtype(
    [
        ("count", np.int32),  # states that are possible
        ("side", np.int32),  # which half of the room holds them
        ("surprises", np.int32),  # turns of this episode that no state explained
        ("dropped", np.int32),  # times that a state of this episode found no room
    ]
)
BYTES_OF_BELIEF = 2 * (ROOM * NETWORK.itemsize + CAPACITY * 8) + CAPACITY * 8


class Beliefs(NamedTuple):
    """One belief per network. Two halves take turns: from one, the next turn's are written."""

    states: Networks  # records of networks [N, 2, ROOM]
    words: Words  # the same memory, uint64 [N, 2, ROOM, words]
    weights: npt.NDArray[np.float64]  # [N, 2, CAPACITY]
    digests: Words  # [N, CAPACITY] of the states that are being written
    standing: npt.NDArray[np.void]  # STANDING [N]
    prior: Words  # [worlds * attackers, words] each as an episode begins with it
    odds: npt.NDArray[np.float64]  # [attackers] its chance


class Prior(NamedTuple):
    """What blue knows before an episode."""

    states: Networks  # [worlds * K] as an episode begins there with each attacker
    odds: npt.NDArray[np.float64]  # [K] the chance of each


NO_PRIOR = Prior(records(0, NETWORK), np.zeros(0))


def make_beliefs(size: int, prior: Prior) -> Beliefs:
    states = records((size, 2, ROOM), prior.states.dtype)
    return Beliefs(
        states,
        words_of(states),
        np.zeros((size, 2, CAPACITY)),
        np.zeros((size, CAPACITY), np.uint64),
        records(size, STANDING),
        words_of(prior.states).copy(),
        prior.odds / prior.odds.sum(),
    )


def words_of(states: Networks) -> Words:
    """The same memory as whole words: quick to copy and to compare."""
    return states.view(np.ndarray).view(np.uint64).reshape(*states.shape, -1)


def words_in(states: Networks) -> int:
    """How many words a state has, known to the compiler."""
    return states.dtype.itemsize // 8


@overload(words_in)
def _compiled_words_in(states):  # type: ignore[no-untyped-def]
    words = states.dtype.size // 8
    return lambda states: words


@rule
def copy_state(states: Networks, words: Words, into: Words) -> None:
    """Plain, since the compiler works for long on an assignment that checks shapes."""
    for w in range(words_in(states)):
        into[w] = words[w]


@rule
def are_equal(states: Networks, words: Words, others: Words) -> bool:
    """Whether two states are the same; all words are looked at, which is quicker than to stop."""
    differing = np.uint64(0)
    for w in range(words_in(states)):
        differing |= words[w] ^ others[w]
    return differing == 0


@rule
def digest(states: Networks, words: Words) -> np.uint64:
    """The same for equal states, and hardly ever for others."""
    total, factor = np.uint64(0), ODD
    for w in range(words_in(states)):
        total += (words[w] ^ (words[w] >> HALF)) * factor
        factor *= ODD
    return total


@large_rule
def begin_belief(beliefs: Beliefs, i: int, world_number: int) -> None:
    """A new episode: only who attacks is unknown."""
    first = world_number * len(beliefs.odds)
    standing = beliefs.standing[i]
    standing.count = len(beliefs.odds)
    standing.side = standing.surprises = standing.dropped = 0
    for k in range(len(beliefs.odds)):
        copy_state(beliefs.states, beliefs.prior[first + k], beliefs.words[i, 0, k])
        beliefs.weights[i, 0, k] = beliefs.odds[k]


@rule
def be_certain(beliefs: Beliefs, i: int, net: Network) -> None:
    """Know the true state, and nothing else."""
    beliefs.states[i, 0, 0] = net
    beliefs.weights[i, 0, 0] = 1
    beliefs.standing[i].count = 1
    beliefs.standing[i].side = 0


@large_rule
def believe(world: World, beliefs: Beliefs, i: int, action: int, seen: Seen) -> None:
    """Take in one turn: blue's own action and the bits that it was shown.

    If no state explains them (the attacker is none of the prior's), those live on that are wrong
    about the fewest hosts, there what is shown is taken for true, and the turn counts as a
    surprise.
    """
    standing = beliefs.standing[i]
    found, wrong_hosts = 0, -1
    while found == 0 and wrong_hosts < hosts_in(world):
        wrong_hosts += 1
        found = advance(world, beliefs, i, action, seen, wrong_hosts)
    if wrong_hosts:
        standing.surprises += 1
    standing.side = 1 - standing.side
    standing.count = found
    total = 0.0
    for k in range(found):
        total += beliefs.weights[i, standing.side, k]
    for k in range(found):
        beliefs.weights[i, standing.side, k] /= total


class Found(NamedTuple):
    """Where the states of the next turn are written, for one network: room for K, and behind them
    for a state with red's move planned and one after it.
    """

    states: Networks  # [K + 2]
    words: Words  # the same memory, [K + 2, words]
    weights: npt.NDArray[np.float64]  # [K]
    digests: Words  # [K]
    standing: Record  # one of STANDING


@rule
def advance(
    world: World, beliefs: Beliefs, i: int, action: int, seen: Seen, wrong_hosts: int
) -> int:
    """How many different states explain what was seen."""
    standing = beliefs.standing[i]
    other = 1 - number(standing.side)
    room = Found(
        beliefs.states[i, other],
        beliefs.words[i, other],
        beliefs.weights[i, other],
        beliefs.digests[i],
        standing,
    )
    return play_all(world, beliefs, i, action, seen, wrong_hosts, room)


@large_rule
def play_all(
    world: World, beliefs: Beliefs, i: int, action: int, seen: Seen, wrong_hosts: int, room: Found
) -> int:
    """Play all that can happen from each state, and keep what shows as many hosts otherwise as
    asked for; how many different states that are.
    """
    found = number(0)
    standing = beliefs.standing[i]
    side = number(standing.side)
    words, weights = beliefs.words[i, side], beliefs.weights[i, side]
    behind = len(room.weights)
    planned = room.states[behind]
    for k in range(standing.count):
        coins = coins_of(beliefs.states[i, side, k])
        for coin in range(coins):
            copy_state(room.states, words[k], room.words[behind])
            malware, decoy = begin_turn(world, planned, action)
            move, targets = plan_move(world, planned, coin)
            chance = weights[k] / (coins * max(1, count(targets)))
            turn = (move, malware, decoy, seen, wrong_hosts)
            if move == RED_SLEEP:
                found = play_branch(world, room, turn, NO_HOST, 0, chance, found)
            while targets:
                target = lowest(targets)
                targets &= targets - 1
                options = exploits_against(planned, target) if move == EXPLOIT else 0
                if options == 0:
                    found = play_branch(world, room, turn, target, 0, chance, found)
                left = options
                while left:
                    chosen = lowest(left)
                    left &= left - 1
                    share = chance * chance_of_exploit(options, chosen)
                    found = play_branch(world, room, turn, target, chosen, share, found)
    return found


@rule
def coins_of(net: Network) -> int:
    """In how many ways the coin falls that this attacker throws: 1 if it throws none."""
    return 2 if net.red == COIN else 1


@large_rule
def play_branch(
    world: World, room: Found, turn: Turn, target: int, chosen: int, chance: float, found: int
) -> int:
    """Red does what is planned to this target with this exploit; its shell is seen, or not."""
    _move, _malware, decoy, seen, wrong_hosts = turn
    found_by_then = found
    for k in range(green_outcomes(world)):
        green, green_chance = green_outcome(world, k)
        is_plain = green != NO_HOST and shown_of(seen, green) & EXPLOIT_SEEN == NO_ACTIVITY
        is_plain = is_plain and wrong_hosts != ANYTHING
        if green_chance == 0 or (is_plain and green != decoy):
            continue  # a scan of green's is hidden only by a new decoy there
        share = chance * green_chance
        found_by_then = play_outcome(world, room, turn, target, chosen, share, found_by_then, green)
    return found_by_then


@rule
def play_outcome(
    world: World,
    room: Found,
    turn: Turn,
    target: int,
    chosen: int,
    chance: float,
    found: int,
    green: int,
) -> int:
    """The same, where green scans this host, or none."""
    move, malware, decoy, seen, wrong_hosts = turn
    behind = len(room.weights)
    state = room.states[behind + 1]
    for detection_die in (SEEN_SHELL, UNSEEN_SHELL):
        copy_state(room.states, room.words[behind], room.words[behind + 1])
        _chosen, recorded = red_acts(world, state, move, target, LOADED + chosen, detection_die)
        end_turn(world, state, target, recorded, malware, decoy, green)
        new_shell = state.alert != NO_HOST
        state.alert = NO_HOST
        share = chance
        if new_shell:
            share *= SEEN_SHARE
        elif detection_die == UNSEEN_SHELL:
            share *= 1 - SEEN_SHARE
        if wrong_hosts == ANYTHING:
            found = keep(room, found, share)
        elif differing_hosts(state.seen, seen) == wrong_hosts:
            if wrong_hosts:
                take_at_its_word(world, state, seen)
            for word in range(len(seen)):
                state.seen[word] = seen[word]
            found = keep(room, found, share)
        if not new_shell:
            break
    return found


@rule
def keep(room: Found, found: int, share: float) -> int:
    """Add the last state of the room to those found, or its chance to the one that equals it.

    Without room it takes the place of the least likely, if it is likelier.
    """
    played = room.words[len(room.weights) + 1]
    short = digest(room.states, played)
    for k in range(found):
        if room.digests[k] == short and are_equal(room.states, room.words[k], played):
            room.weights[k] += share
            return found
    row = found
    if found == len(room.weights):
        room.standing.dropped += 1
        row = number(room.weights.argmin())
        if room.weights[row] >= share:
            return found
    copy_state(room.states, played, room.words[row])
    room.weights[row], room.digests[row] = share, short
    return max(found, row + 1)


@rule
def copy_likely(source: Beliefs, i: int, target: Beliefs, j: int, least: float) -> None:
    """Copy a belief, without states that are less likely than `least`, which is below 1 / CAPACITY.

    Games that are played on by the thousand save most of a belief's time so, and a defender plays
    nearly all of them as it would anyway.
    """
    side, kept, total = number(source.standing[i].side), 0, 0.0
    count = number(source.standing[i].count)
    words, weights = target.words[j, side], target.weights[j, side]
    for k in range(count):
        weight = source.weights[i, side, k]
        if weight >= least:
            copy_state(source.states, source.words[i, side, k], words[kept])
            weights[kept] = weight
            kept += 1
            total += weight
    if kept < count:
        for k in range(kept):
            weights[k] /= total
    target.standing[j] = source.standing[i]
    target.standing[j].count = kept


@rule
def copy_ahead(source: Beliefs, i: int, target: Beliefs, j: int) -> int:
    """Copy the states of a belief to where those of j's next turn are written, for `turn_to`.

    How many there are; 0 if not all of them may have found room in the source.
    """
    count = number(source.standing[i].count)
    if count == CAPACITY:
        return 0
    side, other = number(source.standing[i].side), 1 - number(target.standing[j].side)
    for k in range(count):
        copy_state(source.states, source.words[i, side, k], target.words[j, other, k])
        target.weights[j, other, k] = source.weights[i, side, k]
    return count


@rule
def turn_to(beliefs: Beliefs, i: int, count: int) -> None:
    """Believe what was written for the next turn."""
    beliefs.standing[i].side = 1 - beliefs.standing[i].side
    beliefs.standing[i].count = count


@rule
def is_same_belief(beliefs: Beliefs, i: int, j: int) -> bool:
    """Whether two beliefs hold the same states in the same order, but for rounding."""
    one, other = beliefs.standing[i], beliefs.standing[j]
    if one.count != other.count or one.surprises != other.surprises:
        return False
    for k in range(one.count):
        difference = beliefs.weights[i, one.side, k] - beliefs.weights[j, other.side, k]
        if abs(difference) > ROUNDING:
            return False
        if not are_equal(
            beliefs.states, beliefs.words[i, one.side, k], beliefs.words[j, other.side, k]
        ):
            return False
    return True


@large_rule
def write_belief(world: World, beliefs: Beliefs, i: int, row: BytesOrFloats) -> None:
    """What is expected of the hidden state, as numbers from 0 to 1.

    Most bits are the same in all states that are possible: these are added once for all of them.
    """
    side = number(beliefs.standing[i].side)
    shared, differing = beliefs.states[i, side, SHARED], beliefs.states[i, side, DIFFERING]
    state, own = beliefs.states[i, 1 - side, PLANNED], beliefs.states[i, 1 - side, OWN]
    compare_states(beliefs, i, side)
    size, total = number(world.hidden_size), np.float32(0)
    row[:size] = 0
    for k in range(beliefs.standing[i].count):
        coins = coins_of(beliefs.states[i, side, k])
        weight = np.float32(beliefs.weights[i, side, k] / coins)
        for coin in range(coins):
            for w in range(words_in(beliefs.states)):
                word = beliefs.words[i, side, k, w]
                beliefs.words[i, 1 - side, PLANNED, w] = word
                beliefs.words[i, 1 - side, OWN, w] = word & beliefs.words[i, side, DIFFERING, w]
            add_hidden(world, state, own, differing, weight, coin, row)
            total += weight
    add_shared(world, shared, differing, total, row)
    row[size - 1] = np.float32(beliefs.standing[i].surprises) / np.float32(MANY_SURPRISES)
    for k in range(size):
        row[k] = min(row[k], np.float32(1))  # rounding may sum up to more


@rule
def compare_states(beliefs: Beliefs, i: int, side: int) -> None:
    """Which bits are set in all states that are possible, and which differ."""
    words = beliefs.words[i, side]
    for w in range(words_in(beliefs.states)):
        always = ever = words[0, w]
        for k in range(1, beliefs.standing[i].count):
            always &= words[k, w]
            ever |= words[k, w]
        words[SHARED, w], words[DIFFERING, w] = always, always ^ ever


@kernel
def begin_beliefs(beliefs: Beliefs, chosen: npt.NDArray[np.bool_]) -> None:
    for i in range(len(beliefs.standing)):
        if chosen[i]:
            begin_belief(beliefs, i, 0)


@kernel
def believe_all(
    worlds: Worlds, beliefs: Beliefs, actions: npt.NDArray[np.int64], seen: Seen
) -> None:
    """A turn of each; all play the first of the worlds. seen: int64 [N, words]."""
    for i in range(len(beliefs.standing)):
        believe(worlds[0], beliefs, i, number(actions[i]), seen[i])
