"""The original simulator, where the user has installed it: as an Env, and our policies as its
agents.

It is imported when one of these is made, and nowhere else in phalanx. It brings its own rule set:
the newest commit plays 2.1-final, commit 606813b plays 2.1-leaderboard.
"""

import inspect
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar, cast

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from phalanx.arrays import Array
from phalanx.cage2.defenders import Defender, Reactor, make_defender
from phalanx.cage2.env import one_action
from phalanx.cage2.history import History
from phalanx.cage2.original_images import own_images
from phalanx.cage2.rules.scenario import (
    CHALLENGE_NAMES,
    DEFAULT_RULES,
    NO_HOST,
    RED_AGENTS,
    RULE_SETS,
)
from phalanx.cage2.scenario.attackers import check_attackers
from phalanx.cage2.scenario.names import CAGE2_NAME
from phalanx.cage2.scenario.original_file import original_file
from phalanx.cage2.scenario.several import Source
from phalanx.cage2.settings import (
    DEFAULT_PRIOR,
    checked_green,
    checked_horizon,
    original_red_agent_weights,
    rule_set_number,
)
from phalanx.errors import ConfigError, MissingError

HOW_TO_GET_IT = (
    "the original simulator (CybORG) is not installed: git clone "
    "https://github.com/cage-challenge/cage-challenge-2, then pip install gym==0.26.2 networkx "
    "pyyaml prettytable paramiko and put cage-challenge-2/CybORG on PYTHONPATH"
)

Original = Any  # an object of the original's, which has no types
Result = TypeVar("Result")
Policy = str | Defender | Callable[[Array], npt.ArrayLike]


def is_installed() -> bool:
    return find_spec("CybORG") is not None


def installed_rules() -> str:
    """The rule set of the installed original, told apart by how red remembers ports."""
    if not is_installed():
        raise MissingError(HOW_TO_GET_IT)
    from CybORG.Simulator.Session import RedAbstractSession

    return RULE_SETS[0] if hasattr(RedAbstractSession, "clearports") else RULE_SETS[1]


class CyborgEnv(gymnasium.Env[Array, npt.ArrayLike]):
    """The original as an Env with the spaces of `Cage2Env`; some 300 steps a second.

    env = CyborgEnv(red_agent="meander", horizon=50, rules="2.1-final")
    obs, info = env.reset(seed=7)
    obs, reward, terminated, truncated, info = env.step(action)   # info["alert"]: see alert()
    known, scanned, access = env.true_state()                     # a few milliseconds each time

    scenario, by_host: a network other than the challenge's own; see `Cage2VectorEnv`.
    green: the chance that green acts in a turn; as the scenario says, if not told.
    """

    metadata: dict[str, object] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        *,
        red_agent: str = "b_line",
        horizon: int = 100,
        rules: str | None = None,
        observation: str = "bits",
        prior: str | Mapping[str, float] = DEFAULT_PRIOR,
        green: float | None = None,
        scenario: Source = CAGE2_NAME,
        by_host: bool | None = None,
    ) -> None:
        self._weights = original_red_agent_weights(red_agent)
        installed = installed_rules()
        if rules is not None and RULE_SETS[rule_set_number(rules)] != installed:
            raise ConfigError(
                f"the installed original plays rules {installed}, not {rules}; check out "
                f"{'its newest commit' if rules == RULE_SETS[0] else 'commit 606813b'}, or play "
                f"rules {installed}"
            )
        self.rules = installed
        self.horizon = checked_horizon(horizon)
        self._history = History(
            horizon=self.horizon,
            observation=observation,
            rules=self.rules,
            prior=prior,
            green=green,
            scenario=scenario,
            by_host=by_host,
        )
        self._source, self._scenario = scenario, self._history.scenario
        self._green = self._scenario.green if green is None else checked_green(green)
        check_attackers(self._scenario, self._weights)
        self.observation_space = spaces.Box(0, 1, (self._history.obs_size,), np.float32)
        self.action_space = spaces.Discrete(self._history.num_actions)
        self._games: dict[str, Original] = {}
        self._turn = self.horizon
        self._dice: tuple[object, ...] = ()  # none were rolled yet

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, object] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin an episode; with a seed, the one that `random.seed(seed)` gives in the original."""
        super().reset(seed=seed)
        if seed is not None or not self._dice:
            begin = seed if seed is not None else int(self.np_random.integers(2**63))
            self._dice = random.Random(begin).getstate()
        red, *others = self._weights
        if others:
            weights = list(self._weights.values())
            red = str(self.np_random.choice(list(self._weights), p=weights))
        if red not in self._games:
            self._games[red] = self._with_own_dice(lambda: self._open(red))
            if seed is not None:  # building the game has rolled the dice
                self._dice = random.Random(seed).getstate()
        self._game = self._games[red]
        self._with_own_dice(self._game.reset)
        self._turn = 0
        return self._history.begin()[0], self._info()

    def step(self, action: npt.ArrayLike) -> tuple[Array, float, bool, bool, dict[str, object]]:
        if self._turn >= self.horizon:
            raise ResetNeeded("call reset() before step(): no episode has begun, or it is over")
        action = one_action(action, self._history.num_actions)
        bits, reward, _never_done, _info = self._with_own_dice(lambda: self._game.step(action))
        self._turn += 1
        obs = self._history.observe([action], [bits])[0]
        over = self._turn >= self.horizon
        return obs, float(reward), False, over, self._info()

    def true_state(self) -> tuple[Array, Array, Array]:
        """What is true now: known, scanned (0 or 1) and access (0 none, 1 user, 2 root), uint8
        [13], or as many as the network has hosts.
        """
        rows = {row[2]: row for row in self._game.env.env.env.get_table("true_table").rows}
        table = [rows[host] for host in self._scenario.host_names]
        known, scanned = (np.array([bool(row[k]) for row in table], np.uint8) for k in (3, 4))
        access = np.array([("None", "User", "Privileged").index(row[5]) for row in table], np.uint8)
        return known, scanned, access

    def _info(self) -> dict[str, object]:
        return {
            "alert": alert(self._game.get_observation("Blue"), self._scenario.host_names),
            "action_mask": self._history.action_masks()[0].view(np.int8),
        }

    def _open(self, red: str) -> Original:
        """The original's game against one of its red agents, on this network."""
        if self._source == CAGE2_NAME:
            return challenge(red, green=self._green)
        with tempfile.TemporaryDirectory() as folder:
            file = original_file(self._source, self._scenario, Path(folder))
            with own_images(file, scenario_reader()):
                return challenge(red, file, self._green)

    def _with_own_dice(self, play: Callable[[], Result]) -> Result:
        """The original rolls Python's global generator; give this Env its own sequence of it."""
        before = random.getstate()
        random.setstate(self._dice)
        try:
            return play()
        finally:
            self._dice = random.getstate()
            random.setstate(before)


def challenge(
    red: str | type, scenario: Path | None = None, green: float | None = None
) -> Original:
    """The challenge's own wrapper around a game against this red agent, or one of this class;
    Scenario2 if not told.

    green: the chance that green acts in a turn; as the scenario says if not told.
    """
    import CybORG.Agents as agents
    from CybORG import CybORG
    from CybORG.Agents.Wrappers import ChallengeWrapper

    own = Path(inspect.getfile(CybORG)).parent / "Shared" / "Scenarios" / "Scenario2.yaml"
    attacker = red
    if isinstance(red, str):
        attacker = getattr(agents, CHALLENGE_NAMES[RED_AGENTS.index(red)])
    players = {"Red": attacker}
    if green is not None:
        players["Green"] = green_agent(green)
    env = CybORG(str(scenario or own), "sim", agents=players)
    return ChallengeWrapper(env=env, agent_name="Blue")


def green_agent(share: float) -> type:
    """The original's GreenAgent, which acts only in this share of all turns.

    One that never or always acts rolls no die for it: games are those of the original's own agents.
    """
    from CybORG.Agents import GreenAgent, SleepAgent
    from CybORG.Shared.Actions import Sleep

    if share == 0:
        return cast(type, SleepAgent)

    class Green(GreenAgent):  # type: ignore[misc]
        def get_action(self, observation: object, action_space: object) -> object:
            acts = share == 1 or random.random() < share
            return super().get_action(observation, action_space) if acts else Sleep()

    return Green


def scenario_reader() -> Original:
    """The original's module that reads scenarios and their images."""
    import CybORG.Simulator.SimulationController as reader

    return reader


def begin(game: Original, seed: int) -> Original:
    """An episode of `challenge` with the dice of a seed; returns its first observation."""
    random.seed(seed)
    return game.reset()


def alert(raw: Mapping[str, Original], hosts: Sequence[str]) -> int:
    """The host on which blue's raw observation reports the process of a new shell, or NO_HOST."""
    for key, host in raw.items():
        processes = host.get("Processes", []) if key != "success" else []
        if any("PID" in process and "Connections" in process for process in processes):
            return hosts.index(host["System info"]["Hostname"])
    return NO_HOST


class CyborgAgent:
    """Any phalanx policy as an agent of the original, for the challenge's evaluation script.

    agent = CyborgAgent("random")                       # in place of BlueLoadAgent()
    agent = CyborgAgent(policy, observation="history")  # a function of obs [1, D]

    The script does not tell an agent how long the episode is: `horizon` is the one that history
    observations are to assume; that of the policy's training, or 100, if not given. `scenario` is
    the network that is played; that of the policy's training, or CAGE-2, if not given.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        observation: str | None = None,
        horizon: int | None = None,
        scenario: Source | None = None,
    ) -> None:
        if horizon is None:
            horizon = int(getattr(policy, "horizon", 100))
        self._history = History(
            horizon=horizon,
            observation=str(observation or getattr(policy, "observation", "bits")),
            rules=getattr(policy, "rules", DEFAULT_RULES),
            prior=getattr(policy, "prior", DEFAULT_PRIOR),
            scenario=getattr(policy, "scenario", CAGE2_NAME) if scenario is None else scenario,
            by_host=getattr(policy, "by_host", None),
        )
        worlds = self._history.worlds
        self.policy: Any = policy
        if isinstance(policy, str):
            self.policy = make_defender(policy, worlds=worlds)
        elif scenario is not None and hasattr(policy, "on"):
            self.policy = policy.on(worlds)
        if isinstance(self.policy, Reactor):
            raise ConfigError(
                "the react defenders need raw sensor reports, which the challenge's script does "
                "not hand to agents; use its own BlueReactRemoveAgent or BlueReactRestoreAgent"
            )
        self._last: int | None = None

    def get_action(self, observation: Array, action_space: object = None) -> int:
        """The action for the 52 bits that the challenge's wrapper shows."""
        bits = np.asarray(observation, np.float32)[None]
        if self._last is None:
            obs = self._history.begin()
        else:
            obs = self._history.observe([self._last], bits)
        if hasattr(self.policy, "act"):
            nothing = np.full(1, NO_HOST, np.int8)
            action = self.policy.act(obs, nothing, self._history.action_masks())
        else:
            action = self.policy(obs)
        self._last = one_action(np.asarray(action).reshape(-1)[:1], self._history.num_actions)
        return self._last

    def end_episode(self) -> None:
        self._last = None
        if hasattr(self.policy, "reset"):
            self.policy.reset()

    def set_initial_values(self, action_space: object, observation: object) -> None:
        """Nothing to prepare."""

    def train(self, results: object) -> None:
        """Trained elsewhere."""
