"""What obedience costs: the return of learners for whom defiance has other prices."""

from pathlib import Path
from typing import TYPE_CHECKING

from phalanx.errors import RunError
from phalanx.play.all_orders import BY_ITSELF
from phalanx.search.logs import as_csv, read_csv, school_name
from phalanx.search.measurer import dice_of, judged_again

if TYPE_CHECKING:
    from phalanx.search.search import Search

COLUMNS = (
    "defiance",
    "learner",
    "return",
    "compliance",
    "reverse_compliance",
    "disputed_compliance",
    "fixes_per_episode",
)
EPISODES = 1000  # of each order
FILE = "obedience.csv"


def measure_obedience(search: "Search") -> list[dict[str, float]]:
    """Train and play learners for each price that was asked for, and for the search's own.

    A learner has the seed and the dice that it has in the search; only the price differs. All
    120 orders are played; the mean over them is a row of obedience.csv.
    """
    c, trainer = search.config, search.trainer
    found = read_obedience(search.folder.path)
    done = {(row["defiance"], row["learner"]) for row in found}
    for price in sorted({*c.defiances, c.defiance}):
        for learner in range(1, int(c.learners) + 1):
            if (price, learner) in done:
                continue
            path = search.folder.path / school_name(learner)
            if price != c.defiance:
                path = trainer.train_for_price(price, learner)
            search.phase = f"playing defiance {price:g}, learner {learner} of {c.learners}"
            figures = play_orders(search, path, learner)
            found.append({"defiance": price, "learner": learner, **figures})
            search.folder.write(FILE, as_csv(COLUMNS, found))
    return found


def play_orders(search: "Search", path: Path, learner: int) -> dict[str, float]:
    """All orders, each judged by itself and by its reverse; compliance is pooled over all fixes."""
    played = search.trainer.play_all(path, EPISODES, dice_of(learner))
    fixes, compliant = played.fixes.ravel(), played.compliant.reshape(len(played.compliant), -1)
    judged = judged_again(fixes, *compliant)
    return {
        "return": float(played.returns.mean()),
        "compliance": float(compliant[BY_ITSELF].sum() / max(int(fixes.sum()), 1)),
        **{name: judged[name] or 0.0 for name in ("reverse_compliance", "disputed_compliance")},
        "fixes_per_episode": float(fixes.mean()),
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
