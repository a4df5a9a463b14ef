"""How far a run is, and what its learner is told at that point."""

from phalanx.training.config import TrainConfig


def progress_of(
    config: TrainConfig, updates: int, episodes: int, steps: int, elapsed_s: float
) -> float:
    """How much of a run is done, 0 to 1: of its budget or of its time, whichever ends it first."""
    if config.env == "cage2" and config.algo == "ppo":
        done = updates / config.total_updates
    elif config.total_steps is not None:
        done = steps / config.total_steps
    elif config.env == "cage2":
        done = steps / (int(config.total_episodes or 1) * config.horizon)
    else:
        done = episodes / int(config.total_episodes or 1)
    if config.duration is not None:
        done = max(done, elapsed_s / (3600 * config.duration))
    return min(1.0, done)


def learning_rate_at(config: TrainConfig, progress: float) -> float:
    return config.learning_rate + (config.final_learning_rate - config.learning_rate) * progress


def entropy_weight_at(config: TrainConfig, progress: float) -> float:
    return config.entropy + (config.final_entropy - config.entropy) * progress
