"""Gymnasium's and Stable-Baselines3's own tests, run against the pool instead of their classes.

    git clone --depth 1 https://github.com/Farama-Foundation/Gymnasium
    pip install pytest pytest-timeout scipy "gymnasium[all]"
    python benchmarks/suites.py gymnasium Gymnasium

    git clone --depth 1 https://github.com/DLR-RM/stable-baselines3
    python benchmarks/suites.py sb3 stable-baselines3

Their tests are read from the checkout, their code is what is installed. Where a test builds a
SyncVectorEnv or AsyncVectorEnv, it gets a `PoolVectorEnv` with 0, 1 and 2 workers in turn; for a
DummyVecEnv a `PoolVecEnv` in this process, for a SubprocVecEnv one with 2 workers. What does not
apply is listed below with its reason, and counted; so is what fails here with their own classes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SUITES = {
    "gymnasium": ["tests/vector", "tests/wrappers/vector", "--ignore=tests/vector/utils"],
    "sb3": [
        f"tests/test_{name}.py"
        for name in (
            "vec_envs",
            "vec_normalize",
            "vec_monitor",
            "vec_stacked_obs",
            "vec_check_nan",
            "vec_extract_dict_obs",
            "monitor",
        )
    ],
}
OUTCOMES: dict[str, str] = {}  # of the tests that were run in this process
THEIRS = "theirs"  # in place of a number of workers
WITH_BOTH = "fails with theirs, too"
LONGEST_S = 120  # a test that takes longer hangs

# Parts of names of tests, and why they do not apply to the pool.
NOT_APPLICABLE: dict[str, dict[str, str]] = {
    "gymnasium": {
        "test_reset_timeout_async_vector_env@0": "one process cannot interrupt itself",
        "test_step_timeout_async_vector_env": "needs a wider number than its space says",
        "test_async_vector_subenv_error": "an environment that fails is replaced, the others go on",
        "test_final_obs_info": "plays an action that is not in the space; the pool refuses it",
        "test_metadata_sync_vector_env@1": "looks into an environment that is in another process",
        "test_metadata_sync_vector_env@2": "looks into an environment that is in another process",
        "test_equivalence_with_wrapper@1": "looks into an environment that is in another process",
        "test_equivalence_with_wrapper@2": "looks into an environment that is in another process",
        "test_custom_space_async_vector_env_shared_memory": "wants an error; the pool can do it",
        "test_check_spaces_sync_vector_env": "wants the name of Gymnasium's class in the message",
    },
    "sb3": {
        "test_subproc_start_method": "workers are started in one way only",
        "test_check_nan": "gives two actions to one environment; the pool refuses them",
    },
}


def pool_vector_env(workers: int, name: str) -> type:
    """A class that is built as Gymnasium's vector environments are."""
    from gymnasium.vector import AutoresetMode

    from phalanx.envs.vector import PoolVectorEnv

    class Pooled(PoolVectorEnv):
        def __init__(
            self,
            env_fns: Any,
            observation_mode: Any = "same",
            autoreset_mode: Any = AutoresetMode.NEXT_STEP,
            **_how: Any,  # copy, shared_memory, context, daemon: the pool decides these itself
        ) -> None:
            super().__init__(
                env_fns,
                num_workers=workers,
                autoreset_mode=autoreset_mode,
                observation_mode=observation_mode,
                trial=False,
            )

    Pooled.__name__ = name  # it is part of the names of tests
    return Pooled


def pool_vec_env(workers: int, name: str) -> type:
    """A class that is built as Stable-Baselines3's VecEnvs are."""
    from phalanx.envs.sb3 import PoolVecEnv

    class Pooled(PoolVecEnv):  # type: ignore[misc]
        def __init__(self, env_fns: Any, start_method: str | None = None) -> None:
            super().__init__(env_fns, num_workers=workers, trial=False)

    Pooled.__name__ = name
    return Pooled


# --- a plugin of pytest ---------------------------------------------------------------------------


def pytest_configure() -> None:
    suite, workers = os.environ["PHALANX_SUITE"].split(":")
    if workers == THEIRS:
        return
    if suite == "gymnasium":
        from gymnasium import vector

        for name in ("SyncVectorEnv", "AsyncVectorEnv"):
            setattr(vector, name, pool_vector_env(int(workers), name))
    else:
        from stable_baselines3.common import env_util, vec_env

        vec_env.DummyVecEnv = env_util.DummyVecEnv = pool_vec_env(0, "DummyVecEnv")
        vec_env.SubprocVecEnv = pool_vec_env(2, "SubprocVecEnv")


def pytest_collection_modifyitems(items: list[Any]) -> None:
    import pytest

    suite, workers = os.environ["PHALANX_SUITE"].split(":")
    for item in items if workers != THEIRS else ():
        for part, reason in NOT_APPLICABLE[suite].items():
            name, _, only = part.partition("@")
            if name in item.nodeid and (not only or only == workers):
                item.add_marker(pytest.mark.skip(reason=f"does not apply: {reason}"))


def pytest_runtest_logreport(report: Any) -> None:
    if report.when != "call" and report.passed:
        return
    outcome = report.outcome
    if report.skipped:
        ours = "does not apply" in str(report.longrepr)
        outcome = "does not apply" if ours else "skipped by themselves"
    OUTCOMES[report.nodeid] = outcome


def pytest_sessionfinish() -> None:
    Path(os.environ["PHALANX_REPORT"]).write_text(json.dumps(OUTCOMES))


# --- the command ----------------------------------------------------------------------------------


def run(suite: str, tests: Path, workers: int | str, which: list[str]) -> dict[str, str]:
    """The outcome of each test that was asked for."""
    with tempfile.TemporaryDirectory(prefix="phalanx-suites-") as folder:
        (Path(folder) / "tests").symlink_to(tests, target_is_directory=True)
        report = Path(folder) / "report.json"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "suites",
            "-p",
            "no:cacheprovider",
            "--timeout",
            str(LONGEST_S),
            "-o",
            "addopts=",
            "-rfEs",
            *which,
        ]
        paths = os.pathsep.join([str(HERE), folder, os.environ.get("PYTHONPATH", "")])
        told = {"PHALANX_SUITE": f"{suite}:{workers}", "PHALANX_REPORT": str(report)}
        subprocess.run(
            command, cwd=folder, env={**os.environ, **told, "PYTHONPATH": paths}, check=False
        )
        outcomes: dict[str, str] = json.loads(report.read_text())
        return outcomes


def run_ours(suite: str, tests: Path, workers: int, more: list[str]) -> Counter[str]:
    """How many tests had which outcome; those that fail are tried with their own classes, too."""
    ours = run(suite, tests, workers, [*SUITES[suite], *more])
    if failed := [test for test, outcome in ours.items() if outcome == "failed"]:
        theirs = run(suite, tests, THEIRS, failed)
        ours.update((test, WITH_BOTH) for test in failed if theirs.get(test) == "failed")
    return Counter(ours.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("checkout", type=Path, help="where their repository was cloned to")
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--json", type=Path)
    asked, more = parser.parse_known_args()
    tests = asked.checkout.absolute() / "tests"
    if not tests.is_dir():
        parser.error(f"{asked.checkout} has no folder tests: clone the repository first")
    results = {}
    for workers in asked.workers if asked.suite == "gymnasium" else [2]:
        results[workers] = run_ours(asked.suite, tests, workers, more)
    columns = ["passed", "failed", WITH_BOTH, "does not apply", "skipped by themselves"]
    print("| suite | workers | " + " | ".join(columns) + " |\n|" + "--|" * (len(columns) + 2))
    for workers, counted in results.items():
        print(
            f"| {asked.suite} | {workers} | " + " | ".join(str(counted[c]) for c in columns) + " |"
        )
    if asked.json:
        asked.json.write_text(json.dumps(results))
    return int(any(counted["failed"] for counted in results.values()))


if __name__ == "__main__":
    sys.exit(main())
