"""Settings of `phalanx evaluate`."""

from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from phalanx.agents import AGENTS, agent_path
from phalanx.cage2.defenders import DEFENDERS, GREEDY
from phalanx.cage2.referee import parse_true_state
from phalanx.cage2.scenario import HORIZONS, RED_AGENTS
from phalanx.cage2.settings import (
    MAX_HORIZON,
    MAX_THREADS,
    original_red_agent_weights,
    red_agent_weights,
    rule_set_number,
)
from phalanx.cage2.workflow import COMPLIANCE_RULES, parse_order
from phalanx.checkpoint import last_checkpoint, load_checkpoint
from phalanx.errors import ConfigError, choices
from phalanx.results import check_writable
from phalanx.settings import OneOf, OrWord, Within, checked

MAX_EPISODES = 1_000_000_000
OF_CAGE2 = (
    "simulator", "workflow", "workflow_grid", "judged_by", "compliance_rule", "true_state",
    "leaderboard", "red_agent", "horizon", "rules",
)  # fmt: skip


@checked
@dataclass(frozen=True, kw_only=True)
class EvaluateConfig:
    """Play many episodes with a trained policy or with scripted defenders; print the returns."""

    target: str | None = field(default=None, metadata={"positional": True})
    """run folder, checkpoint, or name of a defender; all scripted ones if not given"""
    policy: tuple[str, ...] = DEFENDERS
    """defenders: sleep, random, react-remove, react-restore; with a workflow also greedy, which
    repairs by the true state; or champion or champion-final, trained ones that come with phalanx"""
    network: str | None = None
    """the module:factory of a run that trained a torch network of your own"""
    sample: bool = False
    """draw a trained policy's actions instead of taking the most likely ones"""
    simulator: Annotated[str, OneOf("phalanx", "cyborg")] = "phalanx"
    """phalanx, or cyborg: the original, where it is installed (some 500 steps a second)"""
    workflow: str | None = None
    """order of repair to follow and be judged by; all: a mixture; named: six that have names"""
    workflow_grid: bool = False
    """all 120 orders, one after the other"""
    judged_by: str | None = None
    """judge by this order instead of the one that the policy is told"""
    compliance_rule: str = ""
    """how a fix is judged, host or type (see phalanx train --help); a run's own if not given"""
    true_state: str = "exact"
    """when the true state is fetched to judge a fix: exact, every:K turns, episode_end, off"""
    leaderboard: bool = False
    """the challenge's nine cells under its rules, and their sum"""
    red_agent: tuple[str, ...] = RED_AGENTS
    """attackers: b_line, meander, sleep; b_line_detour, meander_rescan, coin, which the challenge
    does not have; or a mixture such as b_line=0.5,meander=0.5"""
    horizon: Annotated[tuple[int, ...], Within(1, MAX_HORIZON)] = (30, 50, 100)
    """turns of an episode, 1 to 10000"""
    episodes: Annotated[int, Within(2, MAX_EPISODES)] = 1000
    """episodes per cell of the table"""
    rules: str = ""
    """rule set: 2.1-final or 2.1-leaderboard; a run's own (else 2.1-final) if not given"""
    seed: Annotated[int, Within(0, 2**64 - 1)] = 0
    """the only source of chance; equal seeds give equal tables"""
    num_threads: Annotated[int | str, Within(1, MAX_THREADS), OrWord("auto")] = "auto"
    """threads that play; results do not depend on it"""
    json: Path | None = None
    """also write the table to this file"""

    def __post_init__(self) -> None:
        trained = [name for name in self.policy if agent_path(name) in AGENTS.values()]
        if trained and (self.target is not None or len(self.policy) > 1):
            raise ConfigError(
                f"{trained[0]} is a trained agent: give it alone, as --policy {trained[0]}"
            )
        if trained:
            object.__setattr__(self, "target", trained[0])
            object.__setattr__(self, "policy", DEFENDERS)
        if self.target is not None and self.policy not in (DEFENDERS, (*DEFENDERS, GREEDY)):
            raise ConfigError(f"give either {self.target} or --policy, not both")
        if self.checkpoint is not None and not self.checkpoint.exists():
            names = ", ".join((*DEFENDERS, *AGENTS))
            raise ConfigError(
                f"there is no run or checkpoint {self.target}; or name one of {names}"
            )
        self._check_env()
        if self.leaderboard:
            object.__setattr__(self, "red_agent", RED_AGENTS)
            object.__setattr__(self, "horizon", HORIZONS)
        if not self.rules:
            object.__setattr__(self, "rules", self._default_rules())
        if not self.compliance_rule:
            own = self._of_run("compliance_rule", "host")
            object.__setattr__(self, "compliance_rule", own)
        self._check_workflow()
        for name in self.policy:
            if name.lower().replace("_", "-") not in (*DEFENDERS, GREEDY):
                raise ConfigError(choices("policy", name, (*DEFENDERS, GREEDY, *AGENTS)))
        known = red_agent_weights if self.simulator == "phalanx" else original_red_agent_weights
        for spec in self.red_agent:
            known(spec)
        rule_set_number(self.rules)
        check_writable(self.json)

    def _check_env(self) -> None:
        """Refuse settings of CAGE-2 for a policy of another environment."""
        for item in fields(self) if self.env != "cage2" else ():
            if item.name in OF_CAGE2 and getattr(self, item.name) != item.default:
                flag = item.name.replace("_", "-")
                raise ConfigError(
                    f"{self.target} was trained on {self.env}: leave out --{flag}, which is for "
                    "CAGE-2"
                )

    def _check_workflow(self) -> None:
        if self.workflow not in (None, "all", "named"):
            parse_order(str(self.workflow))
        if self.judged_by is not None:
            parse_order(self.judged_by)
        if self.compliance_rule not in COMPLIANCE_RULES:
            raise ConfigError(choices("compliance_rule", self.compliance_rule, COMPLIANCE_RULES))
        parse_true_state(self.true_state)
        follows = self.workflow is not None or self.workflow_grid
        if self.workflow is not None and self.workflow_grid:
            raise ConfigError("--workflow-grid plays all orders; leave out --workflow")
        if follows and self.policy == DEFENDERS:
            object.__setattr__(self, "policy", (*DEFENDERS, GREEDY))
        if GREEDY in self.policies and not follows:
            raise ConfigError("greedy repairs in an order: give --workflow or --workflow-grid")

    @property
    def plays_compiled(self) -> bool:
        """Whether whole episodes of a compiled policy may be played in one call."""
        return not self.sample and self.true_state == "exact"

    @property
    def checkpoint(self) -> Path | None:
        """The run folder or file of the trained policy, if the target is one."""
        named = (*DEFENDERS, GREEDY)
        if self.target is None or self.target.lower().replace("_", "-") in named:
            return None
        return agent_path(self.target)

    def _default_rules(self) -> str:
        return "2.1-leaderboard" if self.leaderboard else self._of_run("rules", "2.1-final")

    @property
    def env(self) -> str:
        """Where the policy was trained."""
        return self._of_run("env", "cage2")

    def _of_run(self, setting: str, otherwise: str) -> str:
        """A setting of the run whose policy is played."""
        return str(self._settings_of_run.get(setting, otherwise))

    @cached_property
    def _settings_of_run(self) -> dict[str, Any]:
        if self.checkpoint is None:
            return {}
        _, facts = load_checkpoint(last_checkpoint(self.checkpoint))
        return dict(facts.get("config", {}))

    @property
    def policies(self) -> tuple[str, ...]:
        return self.policy if self.target is None else (self.target,)
