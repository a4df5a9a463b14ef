"""Training with an order of repair: what is logged, told, saved and started from."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phalanx
from phalanx.errors import CheckpointError, RunError
from phalanx.play.trained import load_defender
from phalanx.training.folder import RunFolder
from phalanx.training.loop import train
from phalanx.training.run import Run
from tests.training.test_training import rows, small, theta


@pytest.mark.parametrize("learner", ["compiled", "torch"])
def test_without_a_price_a_workflow_changes_nothing_bit_for_bit(
    tmp_path: Path, learner: str
) -> None:
    free = train(small(tmp_path, "free", learner=learner))
    judged = train(small(tmp_path, "judged", learner=learner, workflow="all", alignment_lambda=0.0))
    one, other = (run.learner.save()[0] for run in (free, judged))
    assert all(np.array_equal(one[name], other[name]) for name in one)
    kept = ("update", "env", "kind", "length", "return")
    same = [{k: row[k] for k in kept} for row in rows(tmp_path / "judged", "episodes")]
    assert same == rows(tmp_path / "free", "episodes")


def test_a_run_logs_how_well_it_follows_its_workflow(tmp_path: Path) -> None:
    run = train(small(tmp_path, "w", workflow="u,op_h,ent,op_s,def", alignment_lambda=4.0))
    order = "user,op_host,enterprise,op_server,defender"
    episodes, updates = rows(tmp_path / "w", "episodes"), rows(tmp_path / "w", "updates")
    last = [row for row in episodes if row["update"] == updates[1]["update"]]
    fixes = sum(int(row["fixes"]) for row in last)
    compliant = sum(int(row["compliant"]) for row in last)
    assert updates[1]["workflow"] == order
    assert float(updates[1]["compliance"]) == pytest.approx(compliant / fixes, abs=1e-4)
    assert float(updates[1]["fixes_per_episode"]) == pytest.approx(fixes / len(last), abs=1e-4)
    alignment = np.mean([float(row["alignment"]) for row in last])
    assert float(updates[1]["alignment"]) == pytest.approx(alignment, abs=1e-3)
    assert float(updates[1]["total_return"]) == pytest.approx(
        float(updates[1]["return"]) + alignment, abs=1e-3
    )
    for row in last:
        share = int(row["compliant"]) / max(1, int(row["fixes"]))
        assert float(row["alignment"]) == pytest.approx(4 * share, abs=1e-3)
    facts = json.loads((tmp_path / "w" / "summary.json").read_text())
    assert facts["workflow"] == order
    assert facts["follows_workflow"] is False
    assert facts["compliance"] == pytest.approx(
        sum(e.compliant for e in run.recent) / sum(e.fixes for e in run.recent)
    )


@pytest.mark.parametrize("alignment", ["delta", "gate"])
def test_a_run_with_a_mixture_of_orders_stops_and_resumes_exactly(
    tmp_path: Path, alignment: str
) -> None:
    changes: dict[str, Any] = {"workflow": "all", "alignment": alignment, "gate_start": 0.1}
    whole = train(small(tmp_path, "whole", **changes))
    part = small(tmp_path, "part", **changes)

    def stop(run: Run) -> None:
        if run.updates == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(part, on_update=stop)
    resumed = train(small(tmp_path, "part", resume=tmp_path / "part", num_threads=2, **changes))
    assert np.array_equal(theta(whole), theta(resumed))
    assert rows(tmp_path / "whole", "episodes") == rows(tmp_path / "part", "episodes")
    gates = [run.extension.gate for run in (whole, resumed)]  # type: ignore[attr-defined]
    if gates[0] is not None:
        assert np.array_equal(gates[0].prices, gates[1].prices)
        assert (gates[0].prices != gates[0].first_price).sum() > 50


def test_a_run_begins_with_the_prices_of_another_if_it_has_such(tmp_path: Path) -> None:
    gate: dict[str, Any] = {"workflow": "all", "alignment": "gate", "gate_start": 0.1}
    first = train(small(tmp_path, "gate", **gate))
    train(small(tmp_path, "delta", workflow="all", alignment="delta"))
    for name in ("gate", "delta"):
        begun = Run(small(tmp_path, f"after-{name}", **gate), RunFolder(tmp_path / f"after-{name}"))
        own = begun.extension.gate.prices.copy()  # type: ignore[attr-defined]
        begun.begin_with(tmp_path / name)
        expected = first.extension.gate.prices if name == "gate" else own  # type: ignore[attr-defined]
        assert np.array_equal(begun.extension.gate.prices, expected)  # type: ignore[attr-defined]
        begun.recipe.close()
        begun.folder.close()
    assert not np.array_equal(own, first.extension.gate.prices)  # type: ignore[attr-defined]


def test_a_run_can_begin_with_what_another_has_learnt(tmp_path: Path) -> None:
    first = train(small(tmp_path, "first"))
    begun = Run(small(tmp_path, "x"), RunFolder(tmp_path / "x"))
    begun.begin_with(tmp_path / "first")
    assert np.array_equal(theta(begun), theta(first))
    begun.recipe.close()
    begun.folder.close()
    with pytest.raises(CheckpointError, match="not of these sizes"):
        train(small(tmp_path, "y", hidden=(8,), start_from=str(tmp_path / "first")))
    with pytest.raises(RunError, match="no run or checkpoint"):
        train(small(tmp_path, "z", start_from=str(tmp_path / "none")))
    assert not (tmp_path / "z").exists()


def test_changing_only_the_order_changes_what_a_policy_does(tmp_path: Path) -> None:
    changes = {"workflow": "all", "observation": "history", "total_steps": 96 * 25 * 20}
    run = train(small(tmp_path, "w", **changes))
    defender = load_defender(run.folder.path)
    obs = np.zeros((120, 172), np.float32)
    logits = defender.logits(np.hstack([obs, defender.told(120, np.arange(120))[:, :]]))
    assert len({row.tobytes() for row in logits}) == 120


def test_a_run_is_judged_by_the_rule_of_its_training(tmp_path: Path) -> None:
    run = train(small(tmp_path, "w", workflow="all", compliance_rule="type"))
    settings: Any = {"workflow": "balanced", "episodes": 2, "horizon": 5, "red_agent": "b_line"}
    for one in (run, str(run.folder.path)):
        assert phalanx.evaluate(one, **settings).config.compliance_rule == "type"
