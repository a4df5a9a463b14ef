"""A share of `make fuzz`: hostile files are refused in one line, and do nothing else."""

from collections.abc import Iterator

import pytest

from tests.fuzz.watch import GOOD, Fuzzer

SHARE = {"checkpoints": 60, "configs": 60, "traces": 30}


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzer]:
    root = tmp_path_factory.mktemp("fuzz") / "cases"
    with Fuzzer(root, seconds=10) as fuzzer:  # machines that test are busy
        yield fuzzer


@pytest.mark.parametrize("kind", SHARE)
def test_no_file_makes_phalanx_fail_hang_grow_or_touch_anything(fuzzer: Fuzzer, kind: str) -> None:
    for number in range(SHARE[kind]):
        judged = fuzzer.judge(kind, number)
        again = f"python -m tests.fuzz {kind} --seed {number}"
        assert judged.verdict in GOOD, f"{judged.verdict}, see {again}: {judged.why}"
