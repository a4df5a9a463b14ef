"""How many workers and environments are chosen where nobody says how many."""

import pytest

from phalanx.envs import auto


@pytest.mark.parametrize(
    ("cores", "n_envs", "step_s", "cpu_share", "workers", "why"),
    [
        (4, 1, 1.0, 1.0, 0, "one environment"),
        (1, 8, 1.0, 1.0, 0, "there is one core"),
        (2, 8, 1.0, 1.0, 2, "2 workers for 2 cores"),
        (8, 3, 1.0, 1.0, 3, "3 workers for 8 cores"),
        (4, 8, 10e-6, 1.0, 0, "less than workers would gain"),
        (4, 15, 10e-6, 1.0, 4, "4 workers for 4 cores"),
        (2, 100, 1e-3, 0.5, 2, "2 workers for 2 cores"),
        (2, 100, 1e-3, 0.4, 16, "that wait"),
        (2, 100, 100e-6, 0.4, 2, "2 workers for 2 cores"),
        (2, 5, 1e-3, 0.4, 5, "that wait"),
        (2, 1000, 1e-3, 0.0, 128, "that wait"),
    ],
)
def test_workers_follow_from_cores_and_from_what_a_step_takes(
    cores: int,
    n_envs: int,
    step_s: float,
    cpu_share: float,
    workers: int,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(auto, "count_cores", lambda: cores)
    monkeypatch.setattr(auto, "_free_mb", lambda: 1e6)
    count, reason = auto.choose_workers(n_envs, step_s, cpu_share)
    assert (count, why in reason) == (workers, True), reason


def test_workers_leave_half_of_the_memory_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto, "count_cores", lambda: 2)
    monkeypatch.setattr(auto, "_free_mb", lambda: 800.0)
    assert auto.choose_workers(100, 1e-3, 0.1)[0] == 10
    monkeypatch.setattr(auto, "_free_mb", lambda: 1.0)
    assert auto.choose_workers(100, 1e-3, 0.1)[0] == 2


@pytest.mark.parametrize(
    ("step_s", "cpu_share", "cores", "n_envs"),
    [(1e-3, 0.4, 2, 64), (1e-3, 0.5, 2, 16), (1e-4, 0.4, 2, 16), (1e-3, 1.0, 8, 16)],
)
def test_there_are_more_environments_of_those_that_wait(
    step_s: float, cpu_share: float, cores: int, n_envs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto, "count_cores", lambda: cores)
    assert auto.choose_num_envs(step_s, cpu_share) == n_envs
