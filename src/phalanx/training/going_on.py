"""Continuing a run: how long it has trained already, and which settings may change."""

from dataclasses import fields
from pathlib import Path

from phalanx.cage2.scenario.names import CAGE2_NAME
from phalanx.files import Facts
from phalanx.settings.fields import check_same
from phalanx.training.config import TrainConfig
from phalanx.training.effects import FORESEEN
from phalanx.training.teacher_config import TeacherConfig

BUDGET = ("total_episodes", "total_steps", "duration")
PLACES = ("num_threads", "num_workers", "ray_address", "cpus_per_sampler")  # where it is computed
MAY_CHANGE = (*BUDGET, *PLACES, "checkpoint_every", "step_timeout", "max_restarts")


def elapsed_before(facts: Facts) -> float:
    """Seconds of training before a checkpoint."""
    return float(facts.get("elapsed_s", sum(facts.get("seconds", {}).values())))


def check_same_settings(folder: Path, config: TrainConfig, facts: Facts) -> None:
    """Refuse to continue a run with other settings than it was begun with."""
    before = {item.name: item.default for item in fields(TeacherConfig)}  # runs without a teacher
    before |= {"foresight": False if FORESEEN.holds(config) else None}  # ... and without foresight
    saved = {"scenario": CAGE2_NAME} | before | facts.get("config", {})
    check_same(folder, config.as_dict(), saved, MAY_CHANGE, "trained")
