"""Play defenders of any kind, from Python: `phalanx.evaluate`."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from phalanx.cage2.attack.attacker import Attacker
from phalanx.cage2.attack.find import name_of
from phalanx.cage2.registration import CAGE2_ENVS
from phalanx.cage2.scenario.packed import fingerprint
from phalanx.errors import ConfigError
from phalanx.files import write_json
from phalanx.play.cells import play_cells
from phalanx.play.evaluate_config import EvaluateConfig
from phalanx.play.players import (
    Player,
    check_there,
    open_player,
    player_of,
    remarks,
    trained_player,
)
from phalanx.play.scores import Scores
from phalanx.play.trained import defender_of
from phalanx.training.recipe import Network
from phalanx.training.run import Run


def evaluate(
    defender: object,
    *,
    leaderboard: bool = False,
    red_agent: str | Attacker | Sequence[str | Attacker] | None = None,
    horizon: int | Sequence[int] | None = None,
    episodes: int = 1000,
    rules: str | None = None,
    seed: int = 0,
    network: Network | str | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> Scores:
    """Play many episodes with defenders of any kind; the returns, as `phalanx evaluate` has them.

    phalanx.evaluate("champion", leaderboard=True)      # prints as the nine cells and their sum
    phalanx.evaluate([run, "react-restore", Blue, model], red_agent="meander", horizon=50)

    defender: a run, its folder, an exported file, a name, a policy of `load_defender`, a
        Stable-Baselines3 model, or one of your own (docs/defenders.md); or a list of these.
    red_agent, horizon: one or several; all of the challenge's if not given. Attackers of your own
        by their names, my_file.py:my_red, or as they are (docs/attackers.md).
    rules: those of the policy's training, or 2.1-leaderboard, if not given.
    network: factory of the torch module, or its module:factory, if a run trained your own.
    progress: show how far it is; None: only in a notebook.
    settings: more of `phalanx evaluate --help`, such as sample, workflow, num_threads, env, json.
    """
    given = defender if isinstance(defender, list | tuple) else [defender]
    entries = _apart([entry_of(one, settings) for one in given])
    names = tuple(one for one in entries if isinstance(one, str))
    in_memory = [one for one in entries if isinstance(one, Player)]
    own = {one.rules for one in in_memory} - {None}
    if rules is None and not leaderboard and not names and len(own) == 1:
        rules = own.pop()
    trained_on = {fingerprint(one.scenario): one.scenario for one in in_memory if one.scenario}
    if not names and len(trained_on) == 1:
        settings.setdefault("scenario", next(iter(trained_on.values())))
    judged = {one.compliance_rule for one in in_memory} - {None}
    if not names and len(judged) == 1:
        settings.setdefault("compliance_rule", judged.pop())
    if red_agent is not None:
        several = (red_agent,) if isinstance(red_agent, str | Attacker) else red_agent
        settings["red_agent"] = tuple(name_of(one) for one in several)
    if horizon is not None:
        settings["horizon"] = tuple(horizon) if isinstance(horizon, Sequence) else (horizon,)
    if network is not None:
        settings["network"] = network if isinstance(network, str) else repr(network)
    factory = None if isinstance(network, str) else network
    config = EvaluateConfig(
        target=names,
        leaderboard=leaderboard,
        episodes=episodes,
        rules=rules or "",
        seed=seed,
        **settings,
    )
    if not entries or (config.elsewhere and len(names) < len(entries)):
        raise ConfigError("give one or more defenders, all of CAGE-2 or all of other environments")
    players = [
        one if isinstance(one, Player) else open_player(one, config, factory)
        for one in (() if config.elsewhere else entries)
    ]
    check_there(players, config.scenario)
    for line in remarks(players, config.rules, config.scenario):
        warnings.warn(line, stacklevel=2)
    scores = Scores(config, tuple(play_cells(config, players, factory, progress)))
    if config.json is not None:
        write_json(config.json, scores.as_dict())
    return scores


def entry_of(one: object, settings: dict[str, object] | None = None) -> str | Player:
    """The name of a defender, or a defender in memory.

    settings: to which the environment of a run is added, if that is not CAGE-2.
    """
    if isinstance(one, str | Path):
        return str(one)
    if not isinstance(one, Run):
        return player_of(one)
    if one.config.env in CAGE2_ENVS:
        return trained_player(str(one.folder.path), defender_of(one))
    if settings is not None and (callable(one.config.env) or ":" in one.config.env):
        settings.setdefault("env", one.config.env)  # the user has named it, for training
    return str(one.folder.path)


def _apart(entries: list[str | Player]) -> list[str | Player]:
    """Defenders of the same name get numbers; the same name twice is one defender."""
    apart: dict[str, str | Player] = {}
    for one in entries:
        if isinstance(one, str):
            apart[one] = one
            continue
        name, number = one.name, 1
        while name in apart:
            number += 1
            name = f"{one.name} {number}"
        apart[name] = replace(one, name=name)
    return list(apart.values())
