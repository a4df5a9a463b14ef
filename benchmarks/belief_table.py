"""A rival for policies against B-line: a table of beliefs, on the same dice.

After the opening, a game against B-line is a Markov process of beliefs: lists of states with their
chances. All beliefs that can be reached by sensible actions are listed, with chances rounded to
1/GRAIN, and solved by backward induction; where the table has no entry, the policy plays on.

    python benchmarks/belief_table.py champion --grain 128 --beliefs 150000 --episodes 1000
    python benchmarks/belief_table.py champion --grain 64 --teach 0 1 2     # as a teacher, by seed

Python explores about a thousand beliefs a second: some minutes for each of B-line's four targets.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import phalanx
from phalanx.cage2.belief import BeliefBatch, prior_of
from phalanx.cage2.rules.attackers import (
    EXPLOIT,
    EXPLOIT_SERVER,
    plan_move,
    step_after_last,
)
from phalanx.cage2.rules.batch_turn import LOG, replay_turn
from phalanx.cage2.rules.belief import SEEN_SHELL, UNSEEN_SHELL, words_of
from phalanx.cage2.rules.network import ACTIVE, FALSE, LOADED, NETWORK, TRUE
from phalanx.cage2.rules.observation import COMPROMISED_OF_ALL
from phalanx.cage2.rules.red import SEEN_SHARE, chance_of_exploit, exploits_against
from phalanx.cage2.rules.scenario import (
    ACTION_SLEEP,
    ANALYSE,
    DECOYS,
    ENTERPRISE2,
    FIRST_DECOY,
    HARAKA_HOSTS,
    HOSTS,
    NO_HOST,
    NUM_EXPLOITS,
    NUM_HOSTS,
    OP_SERVER0,
    PLACEABLE,
    REMOVE,
    RESTORE,
    VERB_OF_ACTION,
    action_index,
)
from phalanx.cage2.rules.scoring import cost
from phalanx.cage2.rules.turn import begin_turn, end_turn, red_acts
from phalanx.cage2.scenario.read import CAGE2_WORLDS
from phalanx.cage2.vector import Cage2VectorEnv
from phalanx.cli.train import EVALUATION_SEED
from phalanx.compiled.bits import has, lowest, number, only
from phalanx.compiled.rule import kernel, records
from phalanx.play.what_if import turn_weights
from phalanx.statistics import interval

HORIZONS = (30, 50, 100)
OPENING = (action_index("DecoyApache", "User2"), action_index("DecoyFemitter", "User2"))
DECOY_ORDER = [
    [decoy.name for decoy in DECOYS].index(name)
    for name in ("DecoyFemitter", "DecoyHarakaSMPT", "DecoyTomcat", "DecoyApache")
]
UNKNOWN_WORTH = -1e4  # tenths: of beliefs that were found, but not explored
ROOM = 4096


@kernel
def expand(
    worlds: Any, words: Any, chances: Any, actions: Any, scratch: Any, scratch_words: Any,
    outcomes: Any, outcome_chances: Any, first: Any, costs: Any,
) -> int:  # fmt: skip
    """All that comes of each action in one turn, and what it is expected to cost, in tenths."""
    n = number(0)
    world, planned, played = worlds[0], scratch[0], scratch[1]
    for a in range(len(actions)):
        first[a] = n
        total = 0.0
        for k in range(len(chances)):
            scratch_words[0] = words[k]
            malware, decoy = begin_turn(world, planned, number(actions[a]))
            move, targets = plan_move(world, planned, 0)
            target = lowest(targets)
            options = exploits_against(planned, target) if move == EXPLOIT else 0
            for exploit in range(NUM_EXPLOITS):
                if (options == 0 and exploit > 0) or (options != 0 and not has(options, exploit)):
                    continue
                share = chances[k]
                if options != 0:
                    share *= chance_of_exploit(options, exploit)
                for die in (SEEN_SHELL, UNSEEN_SHELL):
                    scratch_words[1] = scratch_words[0]
                    _chosen, recorded = red_acts(world, played, move, target, LOADED + exploit, die)
                    tenths = cost(world, played, number(VERB_OF_ACTION[actions[a]]))
                    end_turn(world, played, target, recorded, malware, decoy, NO_HOST)
                    is_new = played.alert != NO_HOST
                    played.alert = NO_HOST
                    chance = share
                    if is_new:
                        chance *= SEEN_SHARE
                    elif die == UNSEEN_SHELL:
                        chance *= 1 - SEEN_SHARE
                    total += chance * tenths
                    outcomes[n] = scratch_words[1]
                    outcome_chances[n] = chance
                    n += 1
                    if not is_new:
                        break
        costs[a] = total
    first[len(actions)] = n
    return n


@kernel
def strip(worlds: Any, nets: Any, count: int, path: int) -> None:
    """Leave only what has an influence on what B-line does and on what blue will see of it."""
    for i in range(count):
        net = nets[i]
        net.stream = net.episode = net.turn = net.horizon = net.red_plan = 0
        net.tenths = 0
        net.known = net.named = net.scanned = net.subnets = net.swept = 0
        net.scan_tried = net.exploited = net.escalated = net.mapped = 0
        step = step_after_last(worlds[0], net)
        net.line_step = max(step - 1, 0)
        net.succeeded = TRUE if step > 0 else FALSE
        net.line_done &= only(EXPLOIT_SERVER)
        net.found_nothing = 0
        net.restored &= (HARAKA_HOSTS & path) | only(OP_SERVER0)
        net.service |= ACTIVE
        net.files &= path
        net.seen[0] &= COMPROMISED_OF_ALL
        for host in range(NUM_HOSTS):
            if not has(path, host):
                net.decoys[host] = net.ports[host] = 0
                net.seen[0] &= ~(number(15) << (4 * host))


@kernel
def one_turn_back(graph: Any, weight: float, after: Any, values: Any, best: Any) -> None:
    """V(b) = max over actions of  -weight cost + Σ P(b') V(b')."""
    begins, actions, costs, first, chances, to = graph
    for i in range(len(values)):
        values[i] = -np.inf
        for a in range(begins[i], begins[i + 1]):
            worth = -weight * costs[a]
            for c in range(first[a], first[a + 1]):
                known = to[c] < len(after)
                worth += chances[c] * (after[to[c]] if known else UNKNOWN_WORTH)
            if worth > values[i] + 1e-9:
                values[i], best[i] = worth, actions[a]


class BeliefTable:
    """The best actions of all beliefs that were explored, for one of B-line's targets."""

    def __init__(self, target: int, rules: str, grain: int, most: int) -> None:
        gateway = int(CAGE2_WORLDS["gateway"][0, target])
        self.path, self.grain = (target, gateway, ENTERPRISE2, OP_SERVER0), grain
        self.bits = sum(1 << host for host in self.path)
        self._numbers: dict[bytes, int] = {}
        self._beliefs: list[tuple[Any, Any]] = []
        self._scratch, self._outcomes = records(2, NETWORK), records(ROOM, NETWORK)
        nets, log = prior_of("b_line", rules, max(HORIZONS)).states.copy(), records(1, LOG)
        for action in OPENING:
            dice = np.array([[LOADED + target, 0, 0]])
            replay_turn(CAGE2_WORLDS, nets, np.ones(1, np.bool_), np.array([action]), dice, log)
        self.look_up(nets, np.ones(1), add=True)
        self._explore(most)
        weights = turn_weights(HORIZONS)[len(OPENING) :]
        after = np.zeros(self.explored)
        self.best = np.zeros((len(weights), self.explored), np.int16)
        for turn in reversed(range(len(weights))):
            values = np.empty(self.explored)
            one_turn_back(self._graph, weights[turn], after, values, self.best[turn])
            after = values
        self.worth = after[0] / 10

    def look_up(self, nets: Any, chances: Any, add: bool = False) -> int:
        """The number of a belief; -1 if it is not there and not to be added."""
        strip(CAGE2_WORLDS, nets, len(nets), self.bits)
        words, which = np.unique(words_of(nets), axis=0, return_inverse=True)
        rounded = np.rint(np.bincount(which.ravel(), chances) / np.sum(chances) * self.grain)
        words, rounded = words[rounded > 0], rounded[rounded > 0]
        key = words.tobytes() + rounded.astype(np.int16).tobytes()
        if key not in self._numbers:
            if not add:
                return -1
            self._numbers[key] = len(self._beliefs)
            self._beliefs.append((words, rounded / rounded.sum()))
        return self._numbers[key]

    def candidates(self, nets: Any, chances: Any) -> Any:
        """Sleep, treatments where red may be, the next decoy of each host, and a spoiled Haraka."""
        actions = [ACTION_SLEEP]

        def on(verb: int, host: int) -> int:
            return 2 + NUM_HOSTS * verb + host

        for host in self.path:
            there, removable, file = (
                chances @ (nets[name] >> host & 1) for name in ("sessions", "removable", "files")
            )
            if there > 0:
                actions.append(on(RESTORE, host))
            if removable > 0:
                actions.append(on(REMOVE, host))
            if there > 0 and 0 < file < 1:
                actions.append(on(ANALYSE, host))
        for host in self.path[:3]:
            fitting = PLACEABLE[host, nets["decoys"][0][host]]
            actions += [on(FIRST_DECOY + d, host) for d in DECOY_ORDER if fitting >> d & 1][:1]
        target = self.path[0]
        if HARAKA_HOSTS >> target & 1 and not nets["restored"][0] >> target & 1:
            actions.append(on(RESTORE, target))
        return np.array(list(dict.fromkeys(actions)), np.int64)

    def _explore(self, most: int) -> None:
        begins, actions, costs, first = [0], [], [], [0]
        chances: list[float] = []
        to: list[int] = []
        buffers = np.zeros(ROOM), np.zeros(64, np.int64), np.zeros(64)
        out, outcome_words = self._outcomes, words_of(self._outcomes)
        while len(actions) == 0 or (
            len(begins) <= len(self._beliefs) and len(self._beliefs) < most
        ):
            words, weights = self._beliefs[len(begins) - 1]
            tried = self.candidates(words.view(NETWORK).reshape(-1), weights)
            n = expand(
                CAGE2_WORLDS, words, weights, tried, self._scratch, words_of(self._scratch),
                outcome_words, *buffers,
            )  # fmt: skip
            seen, likely = out["seen"][:n, 0].copy(), buffers[0]
            for a, action in enumerate(tried):
                rows = np.arange(buffers[1][a], buffers[1][a + 1])
                for shown in np.unique(seen[rows]):
                    alike = rows[seen[rows] == shown]
                    words = outcome_words[
                        alike
                    ]  # not out[alike]: numpy leaves out what pads a record
                    to.append(self.look_up(words.view(NETWORK)[:, 0], likely[alike], add=True))
                    chances.append(float(likely[alike].sum()))
                actions.append(action)
                costs.append(buffers[2][a])
                first.append(len(to))
            begins.append(len(actions))
        self.explored = len(begins) - 1
        self._graph = tuple(map(np.array, (begins, actions, costs, first, chances, to)))


class TableDefender:
    """Plays by the tables where B-line attacks and they have an entry, else as a policy does."""

    batched = True

    def __init__(self, policy: Any, rules: str, tables: dict[int, BeliefTable]) -> None:
        self.policy, self.rules, self.tables = policy, rules, tables
        self.observation, self.prior = policy.observation, policy.prior
        self.asked = self.missing = 0

    def reset(self) -> None:
        """New episodes begin."""
        self.turn, self.last, self.beliefs = 0, np.zeros(0, np.int64), None

    def act(self, obs: Any, masks: Any) -> Any:
        """Actions [N] for observations [N, D]."""
        bits = obs[:, : 4 * NUM_HOSTS]
        if self.beliefs is None:
            many = {"rules": self.rules, "red_agents": "b_line", "horizon": max(HORIZONS)}
            self.beliefs = BeliefBatch(len(obs), **many)
        else:
            self.beliefs.observe(self.last, bits)
        actions = self.policy.act(obs, masks=masks)
        if self.turn < len(OPENING):
            actions[:] = OPENING[self.turn]
        else:
            for i, belief in enumerate(self.beliefs):
                if belief.surprises == 0:  # it is B-line
                    actions[i] = self._action(belief, actions[i])
        self.turn += 1
        self.last = actions
        return actions

    def _action(self, belief: Any, otherwise: int) -> int:
        states, weights = belief.states, belief.weights
        table = self.tables[int(states["line_target"][0])]
        at = table.look_up(states, weights)
        self.asked += 1
        if 0 <= at < table.explored and (states["line_target"] == states["line_target"][0]).all():
            return int(table.best[self.turn - len(OPENING), at])
        self.missing += 1
        return otherwise


def play(defender: Any, observation: str, prior: str, rules: str, episodes: int, seed: int) -> Any:
    """Returns [3, episodes] by each horizon, and B-line's targets."""
    envs = Cage2VectorEnv(
        episodes, red_agent="b_line", rules=rules, horizon=max(HORIZONS), seed=seed,
        observation=observation, prior=prior, autoreset_mode="Disabled",
    )  # fmt: skip
    returns, (obs, _infos) = np.zeros((len(HORIZONS), episodes)), envs.reset()
    if hasattr(defender, "reset"):
        defender.reset()
    for turn in range(max(HORIZONS)):
        actions = defender.act(obs, masks=envs.action_masks())
        obs, rewards, *_rest = envs.step(actions)
        for k, horizon in enumerate(HORIZONS):
            returns[k] += rewards * (turn < horizon)
    return returns, envs.batch.nets["line_target"].copy()


def teach(defender: TableDefender, seeds: list[int], episodes: int, lessons: int) -> None:
    """Train the default recipe with the table as its teacher, and score it."""
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            config = phalanx.TrainConfig(
                rules=defender.rules, seed=seed, total_episodes=episodes, teacher_episodes=lessons,
                num_threads=1, output_dir=Path(folder), name=f"seed{seed}",
            )  # fmt: skip
            run = phalanx.train(config, teacher=defender)
            scored = {"leaderboard": True, "episodes": 1000, "seed": EVALUATION_SEED}
            total = phalanx.evaluate(run, rules=defender.rules, **scored).total
        print(f"taught by the table, seed {seed}: {total:.2f} in the nine cells", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("policy", nargs="?", default="champion")
    parser.add_argument("--rules", default="2.1-leaderboard")
    parser.add_argument("--grain", type=int, default=128)
    parser.add_argument("--beliefs", type=int, default=150_000)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--teach", type=int, nargs="+", default=[], help="seeds of trainings")
    parser.add_argument("--total-episodes", type=int, default=60_000, help="of a training")
    parser.add_argument("--teacher-episodes", type=int, default=400, help="that the table plays")
    asked = parser.parse_args()
    tables = {}
    targets = int(CAGE2_WORLDS["line_targets"][0])
    for target in (host for host in range(NUM_HOSTS) if targets >> host & 1):
        began = time.perf_counter()
        tables[target] = BeliefTable(target, asked.rules, asked.grain, asked.beliefs)
        print(
            f"{HOSTS[target]}: {tables[target].explored:,} beliefs, worth "
            f"{tables[target].worth:.2f}, {time.perf_counter() - began:.0f} s", flush=True,
        )  # fmt: skip
    policy = phalanx.load_defender(asked.policy)
    defender = TableDefender(policy, asked.rules, tables)
    game = (policy.observation, policy.prior, asked.rules, asked.episodes, asked.seed)
    (alone, targets), (table, _same) = play(policy, *game), play(defender, *game)
    everybody = np.ones(len(targets), np.bool_)
    sides = {f"{horizon} turns": (k, everybody) for k, horizon in enumerate(HORIZONS)}
    sides["all three"] = slice(None), everybody
    sides |= {HOSTS[target]: (slice(None), targets == target) for target in tables}
    for name, (horizons, chosen) in sides.items():
        one, other = (
            np.atleast_2d(each[horizons])[:, chosen].sum(axis=0) for each in (alone, table)
        )
        gain = interval(other - one)
        print(
            f"{name}: {asked.policy} {one.mean():.2f}, table {other.mean():.2f}, "
            f"gain {gain['mean']:+.2f} ({gain['low']:+.2f} to {gain['high']:+.2f}), "
            f"{chosen.sum()} episodes"
        )
    missing = defender.missing / max(1, defender.asked)
    print(
        f"not in the table: {missing:.1%} of the decisions, which {asked.policy} made", flush=True
    )
    teach(defender, asked.teach, asked.total_episodes, asked.teacher_episodes)


if __name__ == "__main__":
    main()
