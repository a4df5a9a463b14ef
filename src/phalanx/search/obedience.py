"""What obedience costs: the return of learners from whom other compliances were asked."""

from pathlib import Path
from typing import TYPE_CHECKING

from phalanx.errors import RunError
from phalanx.play.all_orders import BY_ITSELF, BY_REVERSE
from phalanx.search.logs import as_csv, read_csv, school_name
from phalanx.search.measurer import dice_of

if TYPE_CHECKING:
    from phalanx.search.search import Search

COLUMNS = (
    "threshold",
    "learner",
    "return",
    "compliance",
    "reverse_compliance",
    "fixes_per_episode",
)
EPISODES = 1000  # of each order
FILE = "obedience.csv"


def measure_obedience(search: "Search") -> list[dict[str, float]]:
    """Train and play learners for each threshold that was asked for, and for the search's own.

    A learner has the seed and the dice that it has in the search; only the threshold differs. All
    120 orders are played; the mean over them is a row of obedience.csv.
    """
    c, trainer = search.config, search.trainer
    found = read_obedience(search.folder.path)
    done = {(row["threshold"], row["learner"]) for row in found}
    for threshold in sorted({*c.thresholds, c.compliance_threshold}):
        for learner in range(1, int(c.learners) + 1):
            if (threshold, learner) in done:
                continue
            path = search.folder.path / school_name(learner)
            if threshold != c.compliance_threshold:
                path = trainer.train_for_threshold(threshold, learner)
            search.phase = f"playing compliance {threshold:.0%}, learner {learner} of {c.learners}"
            figures = play_orders(search, path, learner)
            found.append({"threshold": threshold, "learner": learner, **figures})
            search.folder.write(FILE, as_csv(COLUMNS, found))
    return found


def play_orders(search: "Search", path: Path, learner: int) -> dict[str, float]:
    """All orders, each judged by itself and by its reverse; compliance is pooled over all fixes."""
    played = search.trainer.play_all(path, EPISODES, dice_of(learner))
    fixes = max(int(played.fixes.sum()), 1)
    return {
        "return": float(played.returns.mean()),
        "compliance": float(played.compliant[BY_ITSELF].sum() / fixes),
        "reverse_compliance": float(played.compliant[BY_REVERSE].sum() / fixes),
        "fixes_per_episode": float(played.fixes.mean()),
    }


def read_obedience(folder: Path) -> list[dict[str, float]]:
    """obedience.csv of a search; none if there is none."""
    path = folder / FILE
    if not path.exists():
        return []
    try:
        return [{name: float(row[name]) for name in COLUMNS} for row in read_csv(path)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} is no table of what obedience costs: {error}") from None
