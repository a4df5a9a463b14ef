"""An episode to look at: `phalanx.replay`, and the page that shows it."""

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from phalanx.cage2.attack.find import name_of
from phalanx.cage2.scenario.names import short_name
from phalanx.cage2.scenario.packed import fingerprint
from phalanx.cage2.settings import is_own
from phalanx.display import progress_display
from phalanx.errors import ConfigError
from phalanx.files import Facts, write_text
from phalanx.play.evaluate import entry_of
from phalanx.play.players import Player, check_there, open_player, remarks
from phalanx.play.what_if import networks_of
from phalanx.show.drawing.page import page, text
from phalanx.show.replay.config import IN_MEMORY, ReplayConfig
from phalanx.show.replay.episode import Chosen, record_episode
from phalanx.show.replay.left_out import why_no_what_if
from phalanx.show.replay.pick import pick_episode
from phalanx.show.replay.recorded_game import record_trace
from phalanx.show.replay.regret import look_back
from phalanx.show.replay.story import headline, what_went_wrong
from phalanx.show.replay.trajectory import Recorder, trajectory_of
from phalanx.show.replay.viewer import REPLAY_PAGE, VIEWER_SCRIPTS, VIEWER_STYLES
from phalanx.training.recipe import Network


@dataclass(frozen=True)
class Replay:
    """An episode as it was played, and a page that shows it.

    episode = phalanx.replay("champion", red_agent="meander", pick="worst")
    print(episode)                      # what came of it, and where it went wrong
    episode.save("episode.html")
    episode.trajectory["plays"][0]      # all that the page shows (docs/trajectory.md)
    """

    trajectory: Facts
    picked: str = ""
    """how it was chosen, in words"""

    def __str__(self) -> str:
        plays, scenario = self.trajectory["plays"], self.trajectory["scenario"]
        told = [
            f"{headline(play, scenario)}; {what_went_wrong(self.trajectory, play)}"
            for play in plays
        ]
        return "\n".join(told)

    @property
    def notes(self) -> list[str]:
        """What is left out and why, a sentence each."""
        said = [note for play in self.trajectory["plays"] for note in play.get("notes", ())]
        return list(dict.fromkeys(said))

    def page(self) -> str:
        """The page as text: one HTML file that fetches nothing."""
        scenario = self.trajectory["scenario"]
        title = " and ".join(headline(play, scenario) for play in self.trajectory["plays"])
        return page(
            title,
            '<main id="replay"></main>',
            styles=VIEWER_STYLES,
            scripts=[*VIEWER_SCRIPTS, REPLAY_PAGE],
            data={"trajectory": self.trajectory},
        )

    def save(self, path: Path | str) -> None:
        """Write the page."""
        write_text(Path(path), self.page())

    def save_json(self, path: Path | str) -> None:
        """Write the trajectory."""
        write_text(Path(path), json.dumps(self.trajectory, separators=(",", ":")) + "\n")

    def _repr_html_(self) -> str:
        """In a notebook: the page in a frame of its own."""
        return (
            f'<iframe srcdoc="{text(self.page())}" sandbox="allow-scripts" '
            'style="width:100%;height:820px;border:0"></iframe>'
        )


class Heard(Protocol):
    """Hears what is being done, how much of it is, and more in words."""

    def __call__(self, what: str, done: int, total: int, note: str = "") -> None: ...


def replay(
    defender: object = None,
    *,
    compare: object = None,
    red_agent: object = None,
    rules: str | None = None,
    network: Network | str | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> Replay:
    """Play an episode and write down all of it, as `phalanx replay` does.

    phalanx.replay("champion", red_agent="meander", pick="worst", of=1000).save("worst.html")
    phalanx.replay(run, compare="champion", seed=7)         # two defenders on the same dice
    phalanx.replay(trace="tests/golden/final", episode=12)  # a recorded game of the original

    defender, compare: a run, its folder, an exported file, a name, a policy of `load_defender`, a
        Stable-Baselines3 model, or one of your own (docs/defenders.md).
    red_agent: meander if not given. One of your own by its name, my_file.py:my_red, or as it is
        (docs/attackers.md).
    rules: those of the policy's training, or 2.1-leaderboard, if not given.
    network: factory of the torch module, or its module:factory, if a run trained your own.
    progress: show how far it is; None: only in a notebook.
    settings: more of `phalanx replay --help`: scenario, green, horizon, seed, episode, pick, of,
        trace, what_if, games, workflow, num_threads.
    """
    entries = [entry_of(one) for one in (defender, compare) if one is not None]
    if defender is None and compare is not None:
        raise ConfigError("compare is beside the first defender; give that, too")
    in_memory = [one for one in entries if isinstance(one, Player)]
    own = {one.rules for one in in_memory} - {None}
    if rules is None and len(in_memory) == len(entries) and len(own) == 1:
        rules = own.pop()
    if network is not None:
        settings["network"] = network if isinstance(network, str) else repr(network)
    if red_agent is not None:
        settings["red_agent"] = name_of(red_agent)
    names = [one if isinstance(one, str) else IN_MEMORY for one in entries]
    target, beside, *_none = *names, "", ""
    config = ReplayConfig(target=target, compare=beside, rules=rules or "", **settings)
    if config.trace is None and "scenario" not in settings:
        config = _where_trained(config, in_memory)
    factory = None if isinstance(network, str) else network
    if config.trace is not None:
        return play_and_record(config)
    players = [
        one if isinstance(one, Player) else open_player(one, config.played, factory)
        for one in entries
    ]
    check_there(players, config.played.scenario)
    for line in remarks(players, config.played.rules, config.played.scenario):
        warnings.warn(line, stacklevel=2)
    return play_and_record(config, players, progress)


def _where_trained(config: ReplayConfig, in_memory: Sequence[Player]) -> ReplayConfig:
    """The same on the network on which defenders in memory were trained, if that is another one."""
    found = {fingerprint(one.scenario): one.scenario for one in in_memory if one.scenario}
    if config.played.checkpoints:
        found |= {fingerprint(config.played.scenario): config.played.scenario}
    if len(found) > 1:
        names = ", ".join(map(short_name, found.values()))
        raise ConfigError(f"these policies were trained on {names}: give scenario=")
    return replace(config, scenario=next(iter(found.values()))) if found else config


def play_and_record(
    config: ReplayConfig, players: Sequence[Player] = (), progress: bool | None = False
) -> Replay:
    """The episode that the settings name, by these defenders."""
    if config.trace is not None:
        return Replay(trajectory_of([record_trace(config.trace, config.episode, config.red_agent)]))
    with progress_display(None, progress) as display:
        task = display.add_task("starting", total=None, note="")

        def heard(what: str, done: int, total: int, note: str = "") -> None:
            display.update(task, description=what, completed=done, total=total, note=note)

        return record_plays(config, players, heard)


def record_plays(config: ReplayConfig, players: Sequence[Player], heard: Heard) -> Replay:
    """The same of episodes that are played; heard: how far it is."""
    for player in players:
        if config.what_if and player.policy is not None:
            networks_of(player.policy)
    chosen, picked = _choose(config, players[0], heard)
    plays = [_play(config, player, chosen.episode, heard) for player in players]
    if chosen.total is not None and plays[0].total != chosen.total:
        plays[0].notes.append(
            f"The episode that was picked had the return {chosen.total:.1f}: the attacker has not "
            "played it again."
        )
    return Replay(trajectory_of(plays), picked)


class Picked(NamedTuple):
    """An episode, and the return that it had when it was picked."""

    episode: Chosen
    total: float | None = None


def _choose(config: ReplayConfig, player: Player, heard: Heard) -> tuple[Picked, str]:
    """The episode, and how it was chosen."""
    chosen = Chosen(config.attacker, config.horizon, config.episode, config.workflow)
    if not config.pick:
        return Picked(chosen), ""
    done = 0

    def played(episodes: int, mean: float) -> None:
        nonlocal done
        done += episodes
        heard(f"{player.name} plays {config.of:,} episodes", done, config.of, f"return {mean:.1f}")

    number, returns = pick_episode(config.played.games, player, chosen, config.pick, played)
    words = f"{config.pick} of {len(returns):,} episodes, whose mean return is {returns.mean():.2f}"
    total = float(returns[number]) if is_own(config.attacker) else None
    return Picked(chosen._replace(number=number), total), words


def _play(config: ReplayConfig, player: Player, chosen: Chosen, heard: Heard) -> Recorder:
    def played(turns: int) -> None:
        heard(f"replaying {player.name}", turns, chosen.horizon)

    episode = record_episode(config.played.games, player, chosen, played)
    if config.what_if is False:
        return episode.recorder
    can_ask = player.policy is not None and player.policy.policy is not None
    if can_ask and episode.is_foreseen:
        look_back(episode, config.games, num_threads=config.num_threads, heard=heard)
    else:
        episode.recorder.notes += why_no_what_if(player, episode.batch, episode.row)
    return episode.recorder
