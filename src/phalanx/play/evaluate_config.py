"""Settings of `phalanx evaluate`."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Annotated, NamedTuple

from phalanx.agents import AGENTS, agent_path
from phalanx.cage2.defenders import DEFENDERS, GREEDY
from phalanx.cage2.referee import parse_true_state
from phalanx.cage2.registration import CAGE2_ENVS
from phalanx.cage2.rules.scenario import DEFAULT_RULES, HORIZONS, RED_AGENTS
from phalanx.cage2.scenario.names import CAGE2_NAME, is_random, short_name
from phalanx.cage2.scenario.packed import fingerprint, scenario_of
from phalanx.cage2.scenario.random_spec import parse_random
from phalanx.cage2.settings import (
    MAX_HORIZON,
    MAX_THREADS,
    SIMULATORS,
    check_simulator,
    original_red_agent_weights,
    red_agent_weights,
    rule_set_number,
)
from phalanx.cage2.workflow import COMPLIANCE_RULES, parse_order
from phalanx.errors import ConfigError, choices
from phalanx.files import Facts, check_writable
from phalanx.importing import place_of
from phalanx.play.plan_config import PlanConfig, base_of, is_planned
from phalanx.settings.fields import OrWord, Within, checked, section
from phalanx.training.checkpoint import last_checkpoint, read_facts
from phalanx.trust import check_named

MAX_EPISODES = 1_000_000_000
OF_CAGE2 = (
    "simulator",
    "workflow",
    "workflow_grid",
    "judged_by",
    "compliance_rule",
    "true_state",
    "leaderboard",
    "red_agent",
    "green",
    "horizon",
    "rules",
    "scenario",
)


class Games(NamedTuple):
    """How episodes are played and judged, whoever plays them."""

    episodes: int
    rules: str
    seed: int
    num_threads: int | str
    compliance_rule: str
    judged_by: str | None = None
    true_state: str = "exact"
    simulator: str = "phalanx"
    sample: bool = False
    green: float | None = None
    scenario: str = CAGE2_NAME

    @property
    def are_compiled(self) -> bool:
        """Whether whole episodes of a compiled policy may be played in one call."""
        return not self.sample and self.true_state == "exact"


@checked
@dataclass(frozen=True, kw_only=True)
class EvaluateConfig(PlanConfig):
    """Play many episodes with defenders of any kind; print the returns."""

    section("defenders")
    target: tuple[str, ...] = field(default=(), metadata={"positional": True})
    """defenders: run folders, checkpoints, module:factory of your own (docs/defenders.md), names.
    Scripted: sleep, random, react-remove, react-restore (these if none is given); with a workflow
    also greedy, which repairs by the true state. Trained: champion, champion-final. A trained
    policy with +plan behind its name, champion+plan, tries likely actions before it plays one"""
    policy: tuple[str, ...] = ()
    """the same, as a flag"""
    sample: bool = False
    """draw a trained policy's actions instead of taking the most likely ones"""
    network: str | None = None
    """the module:factory of a run that trained a torch network of your own"""

    section("game")
    leaderboard: bool = False
    """the challenge's nine cells under its rules, and their sum"""
    red_agent: tuple[str, ...] = RED_AGENTS
    """attackers: b_line, meander, sleep; b_line_detour, meander_rescan, coin, which the challenge
    does not have; or a mixture such as b_line=0.5,meander=0.5"""
    green: Annotated[float | None, Within(0, 1)] = None
    """the chance that green acts in a turn: 1 is the original's GreenAgent; none if not given"""
    horizon: Annotated[tuple[int, ...], Within(1, MAX_HORIZON)] = (30, 50, 100)
    """turns of an episode, 1 to 10000"""
    episodes: Annotated[int, Within(2, MAX_EPISODES)] = 1000
    """episodes per cell of the table"""
    rules: str = ""
    """rule set: 2.1-final or 2.1-leaderboard; a run's own (else 2.1-leaderboard) if not given"""
    seed: Annotated[int, Within(0, 2**64 - 1)] = 0
    """the only source of chance; equal seeds give equal tables"""
    scenario: str = ""
    """network: cage2, a file (docs/scenarios.md), or many, of which each episode draws its own: a
    folder of files, or random:seed=2,users=8-12; a run's own (else cage2) if not given"""
    simulator: str = "phalanx"
    """phalanx; cyborg: the original, where it is installed (some 500 steps a second); or
    module:factory of your own (docs/workflows.md)"""
    env: str | Callable[[], object] | None = None
    """the environment of a run on one of your own, module:factory: a file cannot name code"""

    section("workflow")
    workflow: str | None = None
    """order of repair to follow and be judged by; all: a mixture; named: six that have names"""
    workflow_grid: bool = False
    """all 120 orders, one after the other"""
    judged_by: str | None = None
    """judge by this order instead of the one that the policy is told"""
    compliance_rule: str = ""
    """how a fix is judged, host or type (see phalanx train --help-all); a run's own if not given"""
    true_state: str = "exact"
    """when the true state is fetched to judge a fix: exact, every:K turns, episode_end, off"""

    section("output")
    json: Path | None = None
    """also write the table to this file"""
    num_threads: Annotated[int | str, Within(1, MAX_THREADS), OrWord("auto")] = "auto"
    """threads that play; results do not depend on it"""

    def __post_init__(self) -> None:
        for name in self.policies:
            if is_planned(name) and name not in self.checkpoints:
                raise ConfigError(
                    f"{name} is to plan on top of a trained policy, and there is no run, "
                    f"checkpoint or agent {base_of(name)}"
                )
            if name not in self.checkpoints and not is_scripted(name) and not self.is_own(name):
                known = (*DEFENDERS, GREEDY, *AGENTS)
                near = get_close_matches(plain(name), known, n=1, cutoff=0.5)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise ConfigError(
                    f"there is no run or checkpoint {name}; or name one of {', '.join(known)}, or "
                    f"module:factory of your own{hint}"
                )
        for name, settings in self._settings.items():
            check_named(settings, {"env": self.env, "network": self.network}, name)
        self._check_env()
        if self.leaderboard:
            object.__setattr__(self, "red_agent", RED_AGENTS)
            object.__setattr__(self, "horizon", HORIZONS)
            if self.green:
                raise ConfigError("--leaderboard is the challenge's own game; leave out --green")
        if not self.rules:
            rules = DEFAULT_RULES if self.leaderboard else self._of_runs("rules", DEFAULT_RULES)
            object.__setattr__(self, "rules", rules)
        if not self.compliance_rule:
            object.__setattr__(self, "compliance_rule", self._of_runs("compliance_rule", "host"))
        self._check_scenario()
        self._check_workflow()
        check_simulator(self.simulator)
        if self.simulator in SIMULATORS:  # another one may have other attackers
            ours = self.simulator == "phalanx"
            for spec in self.red_agent:
                (red_agent_weights if ours else original_red_agent_weights)(spec)
        rule_set_number(self.rules)
        check_writable(self.json)

    def _check_env(self) -> None:
        """Refuse settings of CAGE-2 for a policy of another environment."""
        if not self.elsewhere:
            if self.env is not None:
                raise ConfigError("--env is for policies of other environments than CAGE-2")
            return
        name, env = next(iter(self.elsewhere.items()))
        if is_planned(name):
            raise ConfigError(f"{name} was trained on {env}; planning is for defenders of cage2")
        if len(self.elsewhere) < len(self.policies):
            raise ConfigError(
                f"{name} was trained on {env}, others play CAGE-2; evaluate them one by one"
            )
        for item in fields(self):
            if item.name in OF_CAGE2 and getattr(self, item.name) != item.default:
                flag = item.name.replace("_", "-")
                raise ConfigError(
                    f"{name} was trained on {env}: leave out --{flag}, which is for CAGE-2"
                )

    def _check_scenario(self) -> None:
        """That of the runs, if nothing is said; orders of repair are of CAGE-2's kinds of hosts."""
        if not self.scenario:
            object.__setattr__(self, "scenario", self._scenario_of_runs())
        elif is_random(self.scenario):
            parse_random(self.scenario)
        elif self.scenario != CAGE2_NAME and not Path(self.scenario).exists():
            raise ConfigError(f"there is no scenario {self.scenario}; see docs/scenarios.md")
        if self.scenario != CAGE2_NAME and (self.follows or self.leaderboard):
            asked = "--leaderboard" if self.leaderboard else "--workflow"
            raise ConfigError(
                f"{asked} is for CAGE-2 itself, not for {short_name(self.scenario)}; leave it out"
            )

    def _scenario_of_runs(self) -> str:
        """The network on which the policies were trained that are played; where it came as files
        with a policy, in a folder of this process's own.
        """
        found: dict[str, str] = {}
        for name, path in self.checkpoints.items():
            if name not in self.elsewhere:
                place = scenario_of(read_facts(path)[0])
                found.setdefault(fingerprint(place), place)
        if len(found) > 1:
            names = ", ".join(map(short_name, found.values()))
            raise ConfigError(f"these policies were trained on {names}: give --scenario")
        return next(iter(found.values()), CAGE2_NAME)

    def _check_workflow(self) -> None:
        if self.workflow not in (None, "all", "named"):
            parse_order(str(self.workflow))
        if self.judged_by is not None:
            parse_order(self.judged_by)
        if self.compliance_rule not in COMPLIANCE_RULES:
            raise ConfigError(choices("compliance_rule", self.compliance_rule, COMPLIANCE_RULES))
        parse_true_state(self.true_state)
        if self.workflow is not None and self.workflow_grid:
            raise ConfigError("--workflow-grid plays all orders; leave out --workflow")
        if any(plain(name) == GREEDY for name in self.policies) and not self.follows:
            raise ConfigError("greedy repairs in an order: give --workflow or --workflow-grid")

    @property
    def follows(self) -> bool:
        """Whether an order of repair is asked for."""
        return self.workflow is not None or self.workflow_grid

    @property
    def games(self) -> Games:
        return Games(*(getattr(self, name) for name in Games._fields))

    @property
    def policies(self) -> tuple[str, ...]:
        """The defenders, in the order in which they play."""
        named = (*self.target, *self.policy)
        if named:
            return tuple(dict.fromkeys(named))
        return (*DEFENDERS, GREEDY) if self.follows else DEFENDERS

    @cached_property
    def checkpoints(self) -> dict[str, Path]:
        """The files of trained policies, by the name that was given."""
        named = [name for name in self.policies if not is_scripted(name)]
        paths = {name: agent_path(base_of(name)) for name in named}
        return {name: last_checkpoint(path) for name, path in paths.items() if path.exists()}

    def is_own(self, name: str) -> bool:
        """Whether a name is that of the user's own code."""
        return ":" in name and name not in self.checkpoints and not is_scripted(name)

    @cached_property
    def _settings(self) -> dict[str, dict[str, object]]:
        """Those of the runs whose policies are played."""
        return {name: settings_of(path) for name, path in self.checkpoints.items()}

    @cached_property
    def elsewhere(self) -> dict[str, str]:
        """Policies that were trained on another environment than CAGE-2, and on which."""
        envs = {name: str(one.get("env", "cage2")) for name, one in self._settings.items()}
        given = self.env if self.env is None or isinstance(self.env, str) else place_of(self.env)
        others = {name: env for name, env in envs.items() if env not in CAGE2_ENVS}
        if given is not None and len(set(others.values())) > 1:
            raise ConfigError(
                f"--env {given} cannot be that of {', '.join(others)}, which were trained on "
                f"{', '.join(sorted(set(others.values())))}; evaluate them one by one"
            )
        return {name: given or env for name, env in others.items()}

    def _of_runs(self, setting: str, otherwise: str) -> str:
        """A setting of the runs whose policies are played, if they agree."""
        found = {str(settings.get(setting, otherwise)) for settings in self._settings.values()}
        return found.pop() if len(found) == 1 else otherwise


def settings_of(checkpoint: Path) -> Facts:
    """Those of the run that a checkpoint comes from."""
    return dict(read_facts(checkpoint)[0].get("config", {}))


def check_of_cage2(name: str, does: str, any_network: bool = False) -> None:
    """Refuse a policy of another environment, for a command that `does` this with CAGE-2's."""
    path = agent_path(base_of(name))
    if path.exists() and not is_scripted(name):
        settings = settings_of(last_checkpoint(path))
        env, network = settings.get("env", "cage2"), settings.get("scenario", CAGE2_NAME)
        if env not in CAGE2_ENVS:
            raise ConfigError(f"{name} was trained on {env}; {does} defenders of cage2")
        if network != CAGE2_NAME and not any_network:
            raise ConfigError(
                f"{name} was trained on scenario {short_name(network)}; {does} defenders of CAGE-2 "
                "itself, phalanx evaluate plays all"
            )


def plain(name: str) -> str:
    return name.lower().replace("_", "-")


def is_scripted(name: str) -> bool:
    return plain(name) in (*DEFENDERS, GREEDY)
