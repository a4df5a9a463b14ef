"""What a search has measured, and what it believes of all 120 orders by that."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypedDict

import numpy as np
import numpy.typing as npt

from phalanx.cage2.workflow import DISTANCES, NUM_ORDERS
from phalanx.search.decision import Estimate
from phalanx.search.gp_ucb import Posterior, chance_of_passing, choose, fit, upper_bounds
from phalanx.search.luck import estimate_returns
from phalanx.settings.fields import Within, checked

COMPLIANCE_SPREAD = 0.2  # by how much orders differ in it, before any was tried
ENOUGH = 4  # orders from which the luck of learners is estimated
Floats = npt.NDArray[np.float64]


@checked
@dataclass(frozen=True, kw_only=True)
class Visit:
    """One order that was tried: a row of search.csv."""

    iteration: int
    """its place among the orders that were tried, from 1"""
    shard: str
    """the part of a search that tried it, such as 1/2"""
    workflow: Annotated[int, Within(0, NUM_ORDERS - 1)]
    """the order's number, from 0 to 119"""
    order: str
    """the order in words, the most urgent unit type first"""
    chosen_by: str
    """named, gp_ucb or exhaustive"""
    acquisition: float | None
    """why it was chosen: the upper bound of its return, as far as it may pass the gate"""
    posterior_mean: float | None
    """the return that was expected of it before it was tried"""
    posterior_std: float | None
    """how uncertain that was, as a standard deviation"""
    chance_of_passing: float | None
    """how likely it seemed that it would pass the gate"""
    top_three: str
    """the numbers of the orders with the best bounds"""
    measured_return: float
    """mean return of the episodes by which it was measured"""
    stderr: float
    """standard error of that mean"""
    compliance: float | None
    """share of all fixes that followed the order; empty without a fix"""
    fixes_per_episode: float
    """fixes in an episode, on average"""
    share_without_fix: float
    """share of episodes without any fix"""
    passed: bool
    """the gate: compliance and fixes are high enough"""
    stopped_by: str
    """what ended its own training: gate, plateau, cap, or none if it had none"""
    trained_episodes: int
    """episodes of its own training"""
    measured_episodes: int
    """episodes by which return and compliance were measured"""
    episodes: int
    """all episodes that were played for it"""
    total_episodes: int
    """episodes of the search so far"""
    model_updated: bool
    """whether its return entered the model; that of a policy which failed the gate does not"""
    seconds: float
    """how long it took"""
    paired_stderr: float | None = None
    """standard error of the mean without what the common dice do to all orders alike"""
    by_learner: str = ""
    """the mean return by each of several learners"""

    @property
    def means(self) -> list[float]:
        """The return by each learner."""
        return [float(word) for word in self.by_learner.split()] or [self.measured_return]


class Outlook(TypedDict):
    """What is known of an order before it is tried: columns of search.csv."""

    acquisition: float | None
    posterior_mean: float | None
    posterior_std: float | None
    chance_of_passing: float | None
    top_three: str


class Surrogate:
    """Two Gaussian processes: of the return, and of compliance.

    surrogate = Surrogate(visits, beta=2.0, threshold=0.9, min_fixes=1.0)
    surrogate.next(candidates)        # the order to try now, or None
    surrogate.ranking()               # orders that passed, best first

    pending: orders that are being tried; their neighbours attract less meanwhile.
    """

    def __init__(
        self,
        visits: Sequence[Visit],
        beta: float,
        threshold: float,
        min_fixes: float,
        pending: Sequence[int] = (),
    ) -> None:
        self.visits, self._min_fixes, self._pending = visits, min_fixes, list(pending)
        good = [visit for visit in visits if visit.passed]
        numbers, measured = returns_of(good)
        self.returns: Posterior = fit(
            DISTANCES, numbers, measured.mean, measured.covariance, pending=self._pending
        )
        # What luck adds is known by the learners; what is not known of orders that were not tried
        # is the model's affair (Satterthwaite, 1946).
        luck, all_in_all = spread(measured.covariance), spread(self.returns.covariance)
        self.freedom = measured.freedom * max(1.0, all_in_all / max(luck, 1e-18)) ** 2
        self.behind = np.zeros(NUM_ORDERS)
        self.behind[numbers] = measured.behind
        gate = _measurements(visits, lambda one: (gate_score(one, min_fixes), gate_noise(one)))
        self.compliance: Posterior = fit(DISTANCES, *gate, spread=COMPLIANCE_SPREAD)
        self.know_returns = bool(good)
        # Nothing is known of the gate before the first visit.
        self.passing = chance_of_passing(self.compliance, threshold) if visits else None
        self.bounds = upper_bounds(self.returns, beta, self.passing)

    def next(self, candidates: Sequence[int]) -> int | None:
        allowed = np.zeros(NUM_ORDERS, np.bool_)
        allowed[list(candidates)] = True
        tried = [visit.workflow for visit in self.visits]
        return choose(self.bounds, tried, self._pending, allowed)

    def may_gain(self, number: int, margin: float) -> bool:
        """Whether an order may be ahead of the best that passed by more than the margin."""
        passed = self.ranking()
        if not passed:
            return True
        return bool(self.bounds[number] > self.returns.mean[passed[0]] + margin)

    def ranking(self) -> list[int]:
        """Orders that passed the gate, by what is believed of their return; best first."""
        passed = {visit.workflow for visit in self.visits if visit.passed}
        return sorted(passed, key=lambda number: -self.returns.mean[number])

    def nearest_to_passing(self) -> list[int]:
        """All that were tried, those that came nearest to following their order first."""
        ranked = sorted(self.visits, key=lambda visit: -gate_score(visit, self._min_fixes))
        return [visit.workflow for visit in ranked]

    def outlook(self, number: int, candidates: Sequence[int]) -> Outlook:
        known = self.know_returns
        best = sorted(candidates, key=lambda other: (-self.bounds[other], other))[:3]
        return {
            "acquisition": float(self.bounds[number]) if known else None,
            "posterior_mean": float(self.returns.mean[number]) if known else None,
            "posterior_std": float(self.returns.std[number]) if known else None,
            "chance_of_passing": None if self.passing is None else float(self.passing[number]),
            "top_three": " ".join(map(str, best)) if known else "",
        }


def spread(covariance: Floats) -> float:
    """The mean variance of errors, without what all orders have in common."""
    many = len(covariance)
    return float((np.trace(covariance) - covariance.sum() / many) / many) if many else 0.0


def gate_score(visit: Visit, min_fixes: float) -> float:
    """Compliance; 0 where it is undefined, or fixes are too few to pass."""
    if visit.compliance is None or visit.fixes_per_episode < min_fixes:
        return 0.0
    return visit.compliance


def gate_noise(visit: Visit) -> float:
    """Variance of a measured share of so many fixes (half a fix more on either side)."""
    fixes = visit.fixes_per_episode * visit.measured_episodes
    share = ((visit.compliance or 0.0) * fixes + 0.5) / (fixes + 1)
    return share * (1 - share) / (fixes + 1)


def returns_of(visits: Sequence[Visit]) -> tuple[npt.NDArray[np.int64], Estimate]:
    """Orders that were measured, and what is known of their returns by that alone.

    By several learners: what they differ in tells how large luck is, and what of it orders share.
    By one: only the dice are known. What these do to all orders alike is left out, as it is in all
    differences.
    """
    last = {visit.workflow: visit for visit in visits}
    numbers = np.array(sorted(last), np.int64)
    table = [last[number].means for number in numbers]
    mean = np.array([np.mean(row) for row in table], np.float64)
    learners = {len(row) for row in table}
    if len(numbers) >= ENOUGH and learners == {max(learners)} and max(learners) > 1:
        return numbers, estimate_returns(numbers, np.array(table))
    paired = [last[number].paired_stderr for number in numbers]
    known = [error for error in paired if error is not None]
    usual = float(np.mean(known)) if known else None
    errors = [
        (usual if error is None else error) or last[number].stderr
        for number, error in zip(numbers, paired, strict=True)
    ]
    return numbers, Estimate(mean, np.diag(np.square(np.array(errors, np.float64))))


def _measurements(
    visits: Sequence[Visit], figure: Callable[[Visit], tuple[float, float]]
) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """Which orders were tried, and a figure of each with its variance."""
    values, variances = np.array([figure(visit) for visit in visits], float).reshape(-1, 2).T
    return np.array([visit.workflow for visit in visits], np.int64), values, variances
