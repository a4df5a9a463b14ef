"""A person's score beside others: the champion on the same dice and on many, and the published."""

from dataclasses import asdict, replace

import numpy as np

from phalanx.cage2.rules.scenario import DEFAULT_RULES, PUBLISHED
from phalanx.cage2.settings import red_agent_weights
from phalanx.files import Facts
from phalanx.play.evaluate import evaluate
from phalanx.ui.advice import CHAMPIONS
from phalanx.ui.jobs import Tell
from phalanx.ui.live_game import LiveGame

EPISODES = 500
PARTS = 5


def published(game: LiveGame) -> list[dict[str, object]]:
    """Scores of the challenge's best in the same cell, which are means of many games."""
    (red_agent, *others), settings = red_agent_weights(game.settings.red_agent), game.settings
    cell = (red_agent, settings.horizon)
    if others or settings.rules != DEFAULT_RULES:
        return []
    return [
        {"name": name, "return": scores[cell]}
        for name, scores in PUBLISHED.items()
        if cell in scores
    ]


def beside(game: LiveGame, tell: Tell) -> Facts:
    """The champion's games in the same cell; its first has the dice of the person's game."""
    settings, returns = game.settings, list[float]()
    name = CHAMPIONS[settings.rules]
    for part in range(PARTS):
        tell(part / PARTS, f"{name} plays {EPISODES} games")
        seed = (settings.seed + part) % 2**64
        cell = asdict(replace(settings, seed=seed))
        scores = evaluate(name, **cell, episodes=EPISODES // PARTS, progress=False)
        returns += scores.cells[0].returns.tolist()
    values = np.array(returns)
    return {
        "champion": name,
        "same_dice": round(returns[0], 1) + 0.0,
        "mean": float(values.mean()),
        "low": float(np.quantile(values, 0.05)),
        "high": float(np.quantile(values, 0.95)),
        "episodes": len(returns),
        "better_than": float((values < game.total - 1e-9).mean()),
    }
