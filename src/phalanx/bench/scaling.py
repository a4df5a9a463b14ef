"""How many samplers one learner can feed: costs measured here, and a simulation of what follows.

A sampler plays a rollout, which travels over the learner's link and waits until the learner takes
it; at that moment the sampler begins the next one. So samplers, link and learner are three stations
of a closed queue, and rollouts a second are bounded by the slowest of them.
"""

import heapq
from dataclasses import dataclass, replace

SAMPLERS = (2, 64, 1000)
LINK_BYTES_S = 1.25e9  # ten gigabits
STEP_COSTS = {"compiled CAGE-2": 0.0, "0.1 ms a step": 1e-4, "3 ms a step": 3e-3}


@dataclass(frozen=True)
class Costs:
    """Of one rollout, in seconds of whoever is busy with it."""

    steps: int
    play_s: float
    """a sampler's core: environments, policy, and writing into the object store"""
    learn_s: float
    """the learner: the update, and copying the rollout out of the object store"""
    ask_s: float
    """an empty question to a sampler and its answer"""
    rollout_bytes: int
    weights_bytes: int

    @property
    def link_s(self) -> float:
        """Over the learner's link: the rollout, and the weights that its sampler takes."""
        return (self.rollout_bytes + self.weights_bytes) / LINK_BYTES_S

    @property
    def most_samplers(self) -> float:
        """With so many the learner or its link is busy all the time; more of them wait."""
        slowest = max(self.learn_s, self.link_s)
        return (self.play_s + self.ask_s + self.link_s) / slowest


@dataclass(frozen=True)
class Throughput:
    steps_per_s: float
    learner_busy: float
    samplers_busy: float


def simulate(costs: Costs, samplers: int, rollouts: int = 0) -> Throughput:
    """Play the queue event by event, until so many rollouts have been learnt from."""
    rollouts = rollouts or 20 * samplers + 200
    link_free = learner_free = learning = 0.0
    # Samplers begin spread over one rollout, as they are after a while anyway.
    playing = [costs.ask_s + costs.play_s * (1 + k / samplers) for k in range(samplers)]
    heapq.heapify(playing)
    skipped = rollouts // 4  # until the queue has settled
    began = 0.0
    for done in range(rollouts):
        played = heapq.heappop(playing)
        link_free = max(link_free, played) + costs.link_s
        taken = max(learner_free, link_free)
        learner_free = taken + costs.learn_s
        if done == skipped:
            began, learning = taken, 0.0
        learning += costs.learn_s
        heapq.heappush(playing, taken + costs.ask_s + costs.play_s)
    spent = learner_free - began
    counted = rollouts - skipped
    return Throughput(
        steps_per_s=counted * costs.steps / spent,
        learner_busy=learning / spent,
        samplers_busy=min(1.0, counted * costs.play_s / (samplers * spent)),
    )


def with_step_cost(costs: Costs, seconds: float) -> Costs:
    """The same samplers with an environment whose step takes so much longer."""
    return replace(costs, play_s=costs.play_s + costs.steps * seconds)


def plan(costs: Costs) -> list[dict[str, str | float]]:
    """What to expect of the numbers of samplers, for environments of several speeds."""
    rows = []
    for name, seconds in STEP_COSTS.items():
        case = with_step_cost(costs, seconds)
        row: dict[str, str | float] = {"environment": name, "saturates at": case.most_samplers}
        for samplers in SAMPLERS:
            simulated = simulate(case, samplers)
            row[f"{samplers} samplers (steps/s)"] = simulated.steps_per_s
            row[f"{samplers} samplers (learner busy)"] = simulated.learner_busy
        rows.append(row)
    return rows
