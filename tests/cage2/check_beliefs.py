"""Many more beliefs beside plain enumeration of all dice, and against how often things are true.

python -m tests.cage2.check_beliefs --episodes 2000 --turns 6 --long 16000
"""

from argparse import ArgumentParser

import numpy as np

from phalanx.cage2 import Batch
from phalanx.cage2.belief import BeliefBatch, prior_of
from phalanx.cage2.rules.scenario import useful_actions
from phalanx.cage2.settings import DEFAULT_PRIOR, ORIGINAL_RED_AGENTS
from tests.cage2.test_belief import chi_square, enumerated, hidden, random_action


def compare_short(episodes: int, turns: int, rules: str, prior: str) -> tuple[int, float]:
    """States compared, and the largest difference of a chance."""
    rng = np.random.default_rng([episodes, turns])
    games = Batch(episodes, red_agent=prior, rules=rules, horizon=turns + 1, seed=17)
    beliefs = BeliefBatch(episodes, rules=rules, red_agents=prior, horizon=turns + 1)
    known = prior_of(prior, rules, turns + 1)
    expected = [(known.states, known.odds)] * episodes
    compared, worst = 0, 0.0
    for _turn in range(turns):
        actions = np.array([random_action(rng) for _ in range(episodes)])
        games.play(actions)
        beliefs.observe(actions, games.shown.obs)
        for i, belief in enumerate(beliefs):
            expected[i] = enumerated(expected[i], int(actions[i]), int(games.nets["seen"][i]))
            found = dict(zip(hidden(belief.states), belief.weights, strict=True))
            wanted = dict(zip(hidden(expected[i][0]), expected[i][1], strict=True))
            assert found.keys() == wanted.keys(), f"episode {i}: other states"
            compared += len(wanted)
            worst = max(worst, max(abs(found[state] - wanted[state]) for state in wanted))
    return compared, worst


def judge_long(episodes: int, rules: str, prior: str) -> dict[str, float]:
    """Whole episodes: is what has the chance p true as often; is the truth ever ruled out?

    Each episode is judged in one turn, since turns of one game depend on each other.
    """
    rng = np.random.default_rng(episodes)
    games = Batch(episodes, red_agent=prior, rules=rules, horizon=101, seed=18)
    beliefs = BeliefBatch(episodes, rules=rules, red_agents=prior, horizon=101)
    judged, useful = rng.integers(100, size=episodes), np.flatnonzero(useful_actions())
    chances, true, ruled_out, most = [], [], 0, 0
    for turn in range(100):
        actions = rng.choice(useful, size=episodes)
        games.play(actions)
        beliefs.observe(actions, games.shown.obs)
        most = max(most, int(beliefs.beliefs.standing["count"].max()))
        for i in np.flatnonzero(judged == turn).tolist():
            (truth,) = hidden(games.nets[i : i + 1])
            possible, weights = hidden(beliefs[i].states), beliefs[i].weights
            ruled_out += truth not in possible
            k = int(rng.integers(len(weights)))
            chances.append(weights[k])
            true.append(possible[k] == truth)
    standing = beliefs.beliefs.standing
    return {
        "episodes": episodes,
        "chi-square": round(chi_square(np.array(chances), np.array(true)), 1),
        "truth ruled out": ruled_out,
        "surprises": int(standing["surprises"].sum()),
        "dropped": int(standing["dropped"].sum()),
        "most states": most,
    }


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=2000, help="short ones, in all")
    parser.add_argument("--turns", type=int, default=6, help="of a short episode")
    parser.add_argument("--long", type=int, default=16_000, help="whole ones, in all")
    args = parser.parse_args()
    for rules in ("2.1-leaderboard", "2.1-final"):
        for prior in (ORIGINAL_RED_AGENTS, DEFAULT_PRIOR):
            compared, worst = compare_short(args.episodes // 4, args.turns, rules, prior)
            print(f"{rules}, {prior}: {compared:,} states, largest difference {worst:.1e}")
            print(f"  whole episodes: {judge_long(args.long // 4, rules, prior)}", flush=True)


if __name__ == "__main__":
    main()
