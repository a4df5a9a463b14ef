"""A person's game with the champion's eyes: what it would have done, and what each move cost."""

from contextlib import closing
from dataclasses import asdict

import numpy as np

from phalanx.cage2.batch import Batch
from phalanx.files import Facts
from phalanx.play.trained import load_defender
from phalanx.show.replay.episode import Episode
from phalanx.show.replay.regret import look_back
from phalanx.ui.advice import CHAMPIONS
from phalanx.ui.jobs import Tell
from phalanx.ui.live_game import PLAYER, LiveGame

GAMES = 200
ROUNDS = {"trying actions": 0.1, "settling": 0.8}  # where each begins, of all


def looked_back(game: LiveGame, tell: Tell) -> Facts:
    """The game as a trajectory with the champion's view of every turn, and games from there."""
    settings = game.settings
    champion = load_defender(CHAMPIONS[settings.rules])
    shown = asdict(settings) | {"horizon": max(settings.horizon, champion.horizon)}
    shown |= {"observation": champion.observation, "prior": champion.prior}
    batch = Batch(1, **shown, num_threads=1, same_step=False)
    seed, horizon = settings.seed, settings.horizon
    with closing(batch):
        episode = Episode(
            batch, name=PLAYER, seed=seed, horizon=horizon, policy=champion, prior=game.prior
        )
        for turn, action in enumerate(game.actions):
            tell(0.1 * turn / settings.horizon, "Following your game")
            episode.look()
            batch.play(np.array([action]))
            episode.note(action)

        def heard(what: str, done: int, total: int) -> None:
            tell(share_of(what, done, total), f"{what.capitalize()}, {done} of {total} turns")

        look_back(episode, GAMES, heard=heard)
    return episode.recorder.trajectory()


def share_of(what: str, done: int, total: int) -> float:
    """How far all rounds are, by how far this one is."""
    starts = [*ROUNDS.values(), 1.0]
    k = list(ROUNDS).index(what) if what in ROUNDS else 0
    return starts[k] + (starts[k + 1] - starts[k]) * done / max(1, total)
