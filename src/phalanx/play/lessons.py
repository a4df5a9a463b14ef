"""A defender as a teacher: it plays episodes of a run's game, and its actions are kept."""

import numpy as np

from phalanx.display import progress_display
from phalanx.play.episodes import begin_episodes
from phalanx.play.evaluate import entry_of
from phalanx.play.evaluate_config import EvaluateConfig
from phalanx.play.players import Player, open_player
from phalanx.training.config import TrainConfig
from phalanx.training.teacher import Actions, Teacher, teacher_seed


def open_teacher(config: TrainConfig, given: object = None) -> Teacher:
    """Find the defender now, so that a wrong name ends the run before it begins.

    given: any defender that `phalanx.evaluate` takes, if the settings name none.
    """
    entry = entry_of(config.teacher if given is None else given)
    named = (entry,) if isinstance(entry, str) else ()
    asked = EvaluateConfig(
        target=named,
        red_agent=(config.red_agent,),
        horizon=(config.horizon,),
        episodes=max(2, config.teacher_episodes),
        rules=config.rules,
        seed=teacher_seed(config),
        num_threads=config.num_threads,
    )
    player = entry if isinstance(entry, Player) else open_player(entry, asked)
    return lambda: play_lessons(asked, player)[:, : config.teacher_episodes]


def play_lessons(asked: EvaluateConfig, player: Player) -> Actions:
    """What the teacher does in each turn of each episode, uint8 [T, N]."""
    (horizon,), (red_agent,) = asked.horizon, asked.red_agent
    actions = np.zeros((horizon, asked.episodes), np.uint8)
    with progress_display("turns") as progress:
        task = progress.add_task("starting", total=actions.size, note="")
        for begun in begin_episodes(asked.games, player, red_agent, (horizon,)):
            for turn in range(horizon):
                played = begun.game.actions_of(begun.defender)
                begun.game.play(played)
                actions[turn, begun.chosen] = played
                name = f"{player.name} teaches"
                progress.update(task, advance=len(played), description=name)
    return actions
