"""What a training waits for, in one sentence, by splits made by hand."""

from typing import Any

import pytest

from phalanx.show.profile.bottleneck import bottleneck
from phalanx.show.profile.profile import Profile
from phalanx.stopwatch import PARTS
from phalanx.training.config import TrainConfig


def seen(
    shares: dict[str, dict[str, float]], settings: dict[str, Any] | None = None, **changes: Any
) -> Profile:
    facts: dict[str, Any] = {
        "seconds": 10.0,
        "updates": 5,
        "steps": 1000,
        "episodes": 10,
        "tasks": 0,
        "barriers_per_episode": None,
        "bytes_per_step": None,
        "others_cores": 0.0,
        "num_workers": 0,
        "threads": 2,
        "cores": 2,
        "is_fused": False,
    }
    whole = {name: dict.fromkeys(PARTS, 0.0) | split for name, split in shares.items()}
    return Profile(config=TrainConfig(**settings or {}), shares=whole, **facts | changes)


POLE = {"env": "CartPole-v1", "num_envs": 8}

CASES: dict[str, tuple[Profile, str, str]] = {
    "learning": (
        seen({"main": {"learning": 0.71, "simulator": 0.2}}),
        "The training spends 71 % of its time on learning.",
        "fewer --k-epochs than 4",
    ),
    "one epoch": (
        seen({"main": {"learning": 0.8}}, {"algo": "impala"}),
        "The training spends 80 % of its time on learning.",
        "larger --minibatch-size",
    ),
    "spare cores": (
        seen({"main": {"learning": 0.8}}, threads=1),
        "The training spends 80 % of its time on learning.",
        "--num-threads 2",
    ),
    "the game": (
        seen({"main": {"simulator": 0.6}}),
        "The training spends 60 % of its time in the environments.",
        "--observation history: beliefs cost most",
    ),
    "an environment": (
        seen({"main": {"simulator": 0.6}}, POLE),
        "The training spends 60 % of its time in the environments.",
        "--num-workers 2, if a step takes long",
    ),
    "threads": (
        seen({"main": {"waiting": 0.5, "learning": 0.3}}),
        "The training waits 50 % of its time for its other threads.",
        "larger --minibatch-size: fewer meetings of all threads",
    ),
    "threads on a busy machine": (
        seen({"main": {"waiting": 0.5, "learning": 0.3}}, others_cores=1.5),
        "The training waits 50 % of its time for its other threads.",
        "--num-threads 1: other programs need the cores",
    ),
    "samplers": (
        seen(
            {
                "main": {"waiting": 0.6, "learning": 0.4},
                "sampler 0": {"copying": 0.5, "simulator": 0.4},
                "sampler 1": {"copying": 0.3, "simulator": 0.2},
                "sampler 0's thread 1": {"idle": 1.0},
            },
            POLE,
        ),
        "The learner waits 60 % of its time for rollouts, and samplers spend 40 % of theirs on "
        "copying.",
        "more --n-envs: a step of many costs little more than one of few",
    ),
    "busy workers": (
        seen(
            {
                "main": {"waiting": 0.6, "learning": 0.4},
                "sampler 0": {"waiting": 0.9},
                "worker 0": {"simulator": 0.8, "idle": 0.2},
            },
            POLE,
            num_workers=1,
        ),
        "The learner waits 60 % of its time for rollouts; the sampler waits 90 % of its time for "
        "workers, which step 80 % of theirs.",
        "--num-workers 2",
    ),
    "sleepy workers": (
        seen(
            {"main": {"waiting": 0.6}, "worker 0": {"simulator": 0.1, "idle": 0.9}},
            POLE,
            num_workers=2,
        ),
        "The training waits 60 % of its time for workers, which step 10 % of theirs.",
        "more --n-envs: each worker steps more for each time that it is woken",
    ),
    "a3c": (
        seen(
            {"worker 0": {"policy": 0.5}, "worker 1": {"policy": 0.7}},
            POLE | {"algo": "a3c", "num_workers": 2},
            num_workers=2,
        ),
        "Each worker spends 60 % of its time on choosing actions.",
        "smaller --hidden",
    ),
    "checkpoints": (
        seen({"main": {"logging": 0.6, "learning": 0.4}}),
        "The training spends 60 % of its time on tables and checkpoints.",
        "larger --checkpoint-every",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_largest_part_of_the_thread_that_all_wait_for_is_named(case: str) -> None:
    profile, sentence, first = CASES[case]
    verdict = bottleneck(profile)
    assert verdict.sentence == sentence
    assert verdict.advice[0] == first
