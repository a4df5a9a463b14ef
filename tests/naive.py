"""Definitions, written to be read and not to be fast; the fast versions must agree with them."""

from typing import Any

import numpy as np

from phalanx.cage2.rules.scenario import (
    DECOYS,
    HOST_VERBS,
    IMAGE_OF_HOST,
    NUM_HOSTS,
    VERBS,
)


def listening_ports(host: int, decoys: set[str]) -> set[int]:
    """All ports that are open on a host."""
    return set(IMAGE_OF_HOST[host].ports) | {d.opens for d in DECOYS if d.name in decoys}


def can_place(host: int, decoy_name: str, decoys: set[str]) -> bool:
    """A decoy needs the right system and the port that it asks for."""
    decoy = next(d for d in DECOYS if d.name == decoy_name)
    right_system = decoy.os in ("any", IMAGE_OF_HOST[host].os)
    return right_system and decoy.needs_free not in listening_ports(host, decoys)


class History:
    """What a defender remembers, kept in lists and sets."""

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon
        self.bits = [0.0] * 52
        self.actions: list[int] = []
        self.scans: dict[int, list[int]] = {h: [] for h in range(NUM_HOSTS)}
        self.exploits: dict[int, list[int]] = {h: [] for h in range(NUM_HOSTS)}
        self.decoys: dict[int, set[str]] = {h: set() for h in range(NUM_HOSTS)}
        self.found: dict[int, set[str]] = {h: set() for h in range(NUM_HOSTS)}
        self.repairs: dict[str, dict[int, list[int]]] = {
            verb: {h: [] for h in range(NUM_HOSTS)} for verb in ("Remove", "Restore")
        }
        self.active: list[set[int]] = []

    def observe(self, action: int, bits: Any) -> None:
        self.bits = [float(bit) for bit in bits]
        self.actions.append(action)
        if action >= 2:
            verb, host = HOST_VERBS[(action - 2) // NUM_HOSTS], (action - 2) % NUM_HOSTS
            if verb in self.repairs:
                self.repairs[verb][host].append(len(self.actions))
            if verb == "Restore":
                self.decoys[host].clear()
            elif verb.startswith("Decoy") and can_place(host, verb, self.decoys[host]):
                self.decoys[host].add(verb)
        now = len(self.actions)
        self.active.append({h for h in range(NUM_HOSTS) if bits[4 * h] or bits[4 * h + 1]})
        for h in range(NUM_HOSTS):
            activity = (bits[4 * h], bits[4 * h + 1])
            if activity == (1, 0):
                self.scans[h].append(now)
                self.found[h] |= self.decoys[h]
            elif activity == (1, 1):
                self.exploits[h].append(now)

    def observation(self) -> Any:
        now, hosts = len(self.actions), range(NUM_HOSTS)

        def near(turns: list[int]) -> Any:
            return np.float32(1) / np.float32(1 + now - turns[-1]) if turns else 0

        verb, host = [0] * len(VERBS), [0] * NUM_HOSTS
        if self.actions and self.actions[-1] >= 2:
            verb[(self.actions[-1] - 2) // NUM_HOSTS] = 1
            host[(self.actions[-1] - 2) % NUM_HOSTS] = 1
        elif self.actions:
            verb[VERBS.index(("Sleep", "Monitor")[self.actions[-1]])] = 1
        possible = [(h, d.name) for h in hosts for d in DECOYS if can_place(h, d.name, set())]
        parts = [
            self.bits,
            [float(bool(self.scans[h])) for h in hosts],
            [near(self.scans[h]) for h in hosts],
            [near(self.exploits[h]) for h in hosts],
            [near(sorted(self.scans[h] + self.exploits[h])) for h in hosts],
            [float(name in self.decoys[h]) for h, name in possible],
            verb,
            host,
            [np.float32(now) / np.float32(self.horizon)],
        ]
        return np.array([value for part in parts for value in part], np.float32)

    def open_part(self) -> Any:
        """What `belief` observations show beside the hidden state."""
        now, hosts = len(self.actions), range(NUM_HOSTS)
        possible = [(h, d.name) for h in hosts for d in DECOYS if can_place(h, d.name, set())]
        parts: list[Any] = [
            self.bits,
            [float(name in self.decoys[h]) for h, name in possible],
            [float(bool(self.repairs["Restore"][h])) for h in hosts],
            [np.float32(now) / np.float32(self.horizon)],
            [min(np.float32(1), np.float32(now) / np.float32(turns)) for turns in (30, 50, 100)],
            [float(now >= turns) for turns in (30, 50, 100)],
        ]
        return np.array([value for part in parts for value in part], np.float32)

    def more(self) -> Any:
        """What `memory` observations have beyond that."""
        now, hosts = len(self.actions), range(NUM_HOSTS)

        def near(turns: list[int]) -> Any:
            return np.float32(1) / np.float32(1 + now - turns[-1]) if turns else 0

        possible = [(h, d.name) for h in hosts for d in DECOYS if can_place(h, d.name, set())]
        stays = roams = False
        if now >= 3 and any(2 in turns for turns in self.scans.values()):
            roams = any(2 not in self.scans[h] for h in self.active[2])
            stays = not roams
        parts = [
            [near(self.repairs["Remove"][h]) for h in hosts],
            [near(self.repairs["Restore"][h]) for h in hosts],
            [np.float32(min(8, len(self.exploits[h]))) / np.float32(8) for h in hosts],
            [float(name in self.found[h]) for h, name in possible],
            [float(stays), float(roams)],
        ]
        return np.array([value for part in parts for value in part], np.float32)


def gae(
    rewards: Any, values: Any, next_values: Any, ended: Any, discounts: Any, decay: float
) -> Any:
    """The double sum: every later error of the same episode, discounted and decayed."""
    turns = len(rewards)
    errors = [rewards[t] + discounts[t] * next_values[t] - values[t] for t in range(turns)]
    advantages = []
    for t in range(turns):
        total, weight = 0.0, 1.0
        for later in range(t, turns):
            total += weight * errors[later]
            if ended[later]:
                break
            weight *= discounts[later] * decay
        advantages.append(total)
    return advantages


def vtrace(
    ratios: Any,
    rewards: Any,
    values: Any,
    next_values: Any,
    ended: Any,
    discounts: Any,
    decay: float,
    rho_bar: float,
    c_bar: float,
) -> Any:
    """Targets and advantages by the sum over all later turns of the same episode."""
    turns = len(rewards)
    errors = [
        min(rho_bar, ratios[t]) * (rewards[t] + discounts[t] * next_values[t] - values[t])
        for t in range(turns)
    ]
    targets = []
    for t in range(turns):
        total, weight = values[t], 1.0
        for later in range(t, turns):
            total += weight * errors[later]
            if ended[later]:
                break
            weight *= discounts[later] * decay * min(c_bar, ratios[later])
        targets.append(total)
    advantages = []
    for t in range(turns):
        last = ended[t] or t == turns - 1
        following = next_values[t] if last else targets[t + 1]
        advantages.append(rewards[t] + discounts[t] * following - values[t])
    return targets, advantages


def follows_order(rule: str, order: str, target: str, infected: set[str]) -> bool:
    """Whether a fix of `target` follows the order of repair, in the words of its definition."""

    def kind(host: str) -> str:
        name = host.rstrip("0123456789").lower()
        return {"op_server": "op_server", "op_host": "op_host"}.get(name, name)

    types = order.split(",")
    if rule == "host":
        infected = infected - {"User0"}
        better = types[: types.index(kind(target))]
        return target in infected and not any(kind(host) in better for host in infected)
    held = {kind(host) for host in infected}
    best = next((name for name in types if name in held), None)
    return kind(target) == best
