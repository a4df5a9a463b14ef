"""Games of the original against attackers of one's own: the same moves, the same sessions."""

from pathlib import Path

import numpy as np
import pytest

from phalanx.cage2.rules.red_actions import FIRST_PREFERRED, FIRST_SINGLE
from phalanx.errors import TraceError
from phalanx.verify.replay import verify
from phalanx.verify.traces import read_folder

ROOT = Path(__file__).parent.parent.parent
RECORDED = ROOT / "tests" / "attackers" / "recorded"
EXAMPLES = ROOT / "examples" / "attackers"


@pytest.mark.parametrize("folder", sorted(RECORDED.iterdir()), ids=lambda folder: folder.name)
def test_recorded_moves_lead_to_the_same(folder: Path) -> None:
    result = verify(folder)
    assert (result.steps, result.mismatches) == (600, 0), result.first_mismatch
    assert "st_n_sess" not in result.not_compared


@pytest.mark.parametrize("rules", ["final", "leaderboard"])
@pytest.mark.parametrize("name", ["again", "ssh", "quiet"])
def test_the_same_attacker_written_twice_makes_the_same_moves(name: str, rules: str) -> None:
    result = verify(RECORDED / f"{rules}-{name}", red_agent=f"{EXAMPLES / name}.py:{name}")
    assert (result.steps, result.mismatches) == (600, 0), result.first_mismatch


def test_another_attacker_is_told_apart() -> None:
    result = verify(RECORDED / "final-quiet", red_agent=f"{EXAMPLES / 'again.py'}:again")
    assert result.mismatches > 0
    assert result.first_mismatch is not None
    assert result.first_mismatch.field == "red move"


def test_games_of_the_originals_attackers_take_no_other() -> None:
    golden = ROOT / "tests" / "golden" / "final"
    with pytest.raises(TraceError, match="the original's own"):
        verify(golden, red_agent=f"{EXAMPLES / 'again.py'}:again")


def test_recordings_bring_out_what_only_such_attackers_do() -> None:
    moves, oldest_is_user, raised, several = set(), 0, 0, 0
    for traces in read_folder(RECORDED):
        steps = traces.steps
        moves |= set(np.unique(steps["red"]).tolist())
        oldest_is_user += int(((steps["n_root"] > 0) & (steps["access"] == 1)).sum())
        raised += int((steps["esc"] > 0).sum())
        several = max(several, int(steps["n_sess"].max()))
    assert moves >= set(range(6)) | set(range(FIRST_SINGLE, FIRST_PREFERRED + 8))
    assert oldest_is_user > 1000
    assert raised > 20
    assert several > 5
