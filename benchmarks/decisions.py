"""Can a decision about workflows be trusted? Searches, one JSON line each, and what they show.

python benchmarks/decisions.py measure runs/decisions [--only exhaustive:b_line] [--num-threads 2]
python benchmarks/decisions.py read runs/decisions

`measure` runs what is not in results.jsonl yet, the most telling first; stopped (Ctrl-C, or killed)
it goes on where it was. `--scale 0.01` plays a hundredth of all episodes, to try the script.
"""

import json
import shutil
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from phalanx.cage2.settings import red_agent_weights
from phalanx.cage2.workflow import NUM_ORDERS, order_name
from phalanx.machine import describe_hardware, describe_versions
from phalanx.search.answer import known_of
from phalanx.search.config import SearchConfig
from phalanx.search.decision import decide
from phalanx.search.exhaustive import visits_of
from phalanx.search.measured import Row, disputed, figures_of, read_rows, reverse_compliance
from phalanx.search.obedience import read_obedience
from phalanx.search.search import search
from phalanx.search.words import in_words
from phalanx.statistics import interval

RULES = ("2.1-leaderboard", "2.1-final")
ATTACKERS = ("b_line", "meander")
BOTH = ",".join(ATTACKERS)
SUBSETS = 20  # decisions by any five of the learners that were measured; the others are the truth
KEPT = ("config.yaml", "summary.json", "decision.json", "measured.csv", "search.csv")
KINDS: dict[str, dict[str, Any]] = {
    # The decision as it is made by default.
    "exhaustive": {},
    # The same by five other learners, and nothing else.
    "repeat": {"baseline": False, "finish_share": 0.0, "confirm_episodes": 100},
    # A third of its budget; the winner beside the same learner without workflows.
    "third": {"exhaustive": False, "total_episodes": 50_000},
    # The same without that learner, which takes half of the time.
    "alone": {"exhaustive": False, "total_episodes": 50_000, "baseline": False},
    # What obedience costs: other prices of defiance.
    "obedience": {"learners": 3, "defiances": (0.0, 2.0, 4.0, 20.0), "baseline": False,
                  "finish_share": 0.0, "confirm_episodes": 100, "judge_episodes": 100},
}  # fmt: skip
EPISODES = ("total_episodes", "judge_episodes", "measure_episodes", "final_episodes",
            "confirm_episodes", "max_episodes")  # fmt: skip


@dataclass(frozen=True)
class Job:
    """One search."""

    kind: str
    red_agent: str
    rules: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.red_agent}-{self.rules}-{self.seed}"


def jobs() -> Iterator[Job]:
    """All that the figures need, the most telling first; seeds count from the first one."""
    for red in ATTACKERS:
        yield Job("exhaustive", red, RULES[0], 0)
    for seed in range(10):
        yield Job("third", "b_line", RULES[0], seed)
        yield Job("third" if seed < 8 else "alone", "meander", RULES[0], seed)
        for red in ATTACKERS if seed in (1, 2) else ():
            yield Job("repeat", red, RULES[0], seed)
    for red in ATTACKERS:
        for seed in (0, 1):
            yield Job("repeat", red, RULES[1], seed)
    yield Job("obedience", "b_line", RULES[0], 0)
    yield Job("obedience", "meander", RULES[0], 0)
    yield Job("repeat", BOTH, RULES[0], 0)


def measure(
    folder: Path, only: str | None, scale: float, threads: int | str, first_seed: int
) -> None:
    results = folder / "results.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    for job in (replace(job, seed=first_seed + job.seed) for job in jobs()):
        done = {line["name"] for line in read_lines(results)}
        wanted = only in (None, job.kind, f"{job.kind}:{job.red_agent}", job.name)
        if job.name in done or not wanted:
            continue
        print(f"--- {job.name}", flush=True)
        line = run(job, folder, scale, threads)
        if line is None:
            return
        with results.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(
            json.dumps({k: line[k] for k in ("winner", "minus", "seconds", "in_words")}, indent=1)
        )
        slim(folder / job.name)


def run(job: Job, folder: Path, scale: float, threads: int | str) -> dict[str, Any] | None:
    """One search, or what is left of it; None if it was stopped."""
    path = folder / job.name
    settings: dict[str, Any] = {
        "red_agent": job.red_agent, "rules": job.rules, "seed": job.seed, "num_threads": threads,
        "output_dir": folder, "name": job.name, **KINDS[job.kind],
    }  # fmt: skip
    if scale != 1:
        whole = SearchConfig(**settings)
        settings |= {k: max(2, int(scale * getattr(whole, k))) for k in EPISODES}
        settings |= {"num_envs": 10, "horizon": 20, "update_steps": 20, "finalists": 2}
        settings |= {"compliance_threshold": 0.01}  # nobody learns much in so few
    if (path / "config.yaml").exists():
        settings["resume"] = path
    found = search(SearchConfig(**settings))
    if found.stopped:
        return None
    assert found.decision is not None
    side = list(found.decision["against"].values())[-1]
    first = found.confirmed[0]
    return {
        "name": job.name, "kind": job.kind, "red_agent": job.red_agent, "rules": job.rules,
        "seed": job.seed, "scale": scale, "seconds": round(found.seconds, 1),
        "episodes": found.episodes, "judged": found.summary()["judged"], "winner": found.winner,
        "may_be_best": [o["workflow"] for o in side["orders"] if o["may_be_best"]],
        "can_be_followed": [o["workflow"] for o in side["orders"] if o["can_be_followed"]],
        "minus": found.difference, "compliance": first["compliance"],
        "in_words": in_words(found.decision),
        "versions": describe_versions(), "machine": describe_hardware(),
    }  # fmt: skip


def slim(path: Path) -> None:
    """Keep what was measured, not what was trained."""
    for one in path.iterdir():
        if one.is_dir() and not one.is_symlink():
            shutil.rmtree(one)
        elif one.name not in KEPT and not one.name.startswith(("obedience", ".")):
            one.unlink()


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# --- what they show -------------------------------------------------------------------------------


def read(folder: Path) -> None:
    lines = read_lines(folder / "results.jsonl")
    for red in (*ATTACKERS, BOTH):
        for rules in RULES:
            mine = [k for k in lines if k["red_agent"] == red and k["rules"] == rules]
            whole = [line for line in mine if line["kind"] in ("exhaustive", "repeat")]
            for line in whole:
                print(f"{line['name']}: {line['seconds']:.0f} s; " + " ".join(line["in_words"]))
            folders = [folder / line["name"] for line in whole]
            for some in [[one] for one in folders] + [folders] * (len(folders) > 1):
                tell_decision(some)
            if len(folders) > 1:
                tell_coverage(folders)
            third = [line for line in mine if line["kind"] in ("third", "alone")]
            if third and whole:
                tell_third(third, folders)
            for line in mine:
                if line["kind"] == "obedience":
                    tell_obedience(folder / line["name"])


def tell_obedience(folder: Path) -> None:
    """Means over learners, for each price of defiance; how far apart learners are."""
    rows = read_obedience(folder)
    for price in sorted({row["defiance"] for row in rows}):
        some = [row for row in rows if row["defiance"] == price]
        said = [f"  defiance {price:g}, {len(some)} learners"]
        for name in ("return", "compliance", "reverse_compliance", "disputed_compliance"):
            values = [row[name] for row in some]
            said.append(f"{name} {np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})")
        print(", ".join(said))


def tell_decision(folders: Sequence[Path]) -> None:
    """What the learners of some searches say together."""
    config, rows = joined(folders)
    numbers, estimate = known(config, rows)
    found = decide(estimate, margin=config.margin)
    many, may = len({row.learner for row in rows}), found.may_be_best
    strict = numbers[decide(estimate).may_be_best]
    said = (
        f"  {many} learners: {len(numbers)} can be followed, {may.sum()} may be best or within "
        f"{config.margin:g} of it ({len(strict)} without a margin), none of them costs more than "
        f"{found.high[may].max():.2f}; {order_name(int(numbers[found.best]))} is ahead"
    )
    if not may.all():
        cost = found.cost[~may]
        said += (
            f"; the others cost {cost.min():.2f} to {cost.max():.2f}, at least "
            f"{found.low[~may].min():.2f}, at most {found.high[~may].max():.2f}"
        )
    print(said)
    weights = red_agent_weights(config.red_agent)
    by_order = [[row for row in rows if row.workflow == k] for k in range(NUM_ORDERS)]
    own = np.array([figures_of(some, weights)["compliance"] for some in by_order])
    reverse = np.array([reverse_compliance(some, weights) for some in by_order])
    fixes, followed = disputed(rows, weights)
    assert fixes is not None
    print(
        f"    compliance {own.min():.1%} to {own.max():.1%}, by the reverse {reverse.min():.1%} to "
        f"{reverse.max():.1%}, lower in {(reverse < own).sum()}; {fixes / NUM_ORDERS:.2f} disputed "
        f"fixes an episode, {followed or 0.0:.1%} of them followed the order"
    )


def tell_third(third: list[dict[str, Any]], whole: Sequence[Path]) -> None:
    for folders in [[one] for one in whole] + [whole]:
        config, rows = joined(folders)
        numbers, estimate = known(config, rows)
        for margin in (config.margin, 0.0):
            may_be_best = numbers[decide(estimate, margin=margin).may_be_best].tolist()
            inside = [one["winner"] in may_be_best for one in third]
            print(
                f"  a third of the budget: winner in the set of {len({r.learner for r in rows})} "
                f"learners, margin {margin:g}, in {sum(inside)} of {len(inside)}"
            )
    gains = [one["minus"]["mean"] for one in third if one["minus"]]
    if len(gains) > 1:
        d = interval(gains)
        least = min(one["compliance"] for one in third)
        print(
            f"  winner minus without workflows, mean of {len(gains)}: {d['mean']:+.2f} "
            f"({d['low']:+.2f} to {d['high']:+.2f}), compliance {least:.1%} at least; "
            f"{np.median([one['seconds'] for one in third]):.0f} s each"
        )


def tell_coverage(folders: Sequence[Path]) -> None:
    """Decisions by any five learners of these searches, beside what all their others say."""
    config, rows = joined(folders)
    learners, dice = sorted({row.learner for row in rows}), np.random.default_rng(0)
    held, inside, sizes = [], [], []
    for _ in range(SUBSETS):
        chosen = set(dice.permutation(learners)[:5].tolist())
        numbers, estimate = known(config, [row for row in rows if row.learner in chosen])
        others, rest = known(config, [row for row in rows if row.learner not in chosen])
        truth = dict(zip(others.tolist(), rest.mean.tolist(), strict=True))
        common = [k for k, number in enumerate(numbers.tolist()) if number in truth]
        if not common:
            continue
        means = np.array([truth[int(numbers[k])] for k in common])
        found = decide(estimate.of(np.array(common)))  # a margin would hold the best too easily
        cost = means.max() - means
        held.append(bool(found.may_be_best[means.argmax()]))
        inside.append(bool(((found.low <= cost + 1e-9) & (cost <= found.high + 1e-9)).all()))
        sizes.append(int(found.may_be_best.sum()))
    print(
        f"  coverage, {SUBSETS} decisions by 5 of {len(learners)} learners: best of the other "
        f"{len(learners) - 5} in the set in {sum(held)}, all costs within bounds in {sum(inside)}; "
        f"sets of {min(sizes)} to {max(sizes)}"
    )


def joined(folders: Sequence[Path]) -> tuple[SearchConfig, list[Row]]:
    """What all learners of some searches measured."""
    config, rows = judged(folders[0])
    for k, folder in enumerate(folders[1:], 1):
        rows += [replace(row, learner=row.learner + 100 * k) for row in judged(folder)[1]]
    return config, [row for row in rows if row.workflow is not None]


def judged(folder: Path) -> tuple[SearchConfig, list[Row]]:
    """The settings of a search, and what it measured."""
    settings = yaml.safe_load((folder / "config.yaml").read_text())
    return SearchConfig(**settings), read_rows(folder / "measured.csv")


def known(config: SearchConfig, rows: list[Row]) -> Any:
    """What some of the learners say."""
    return known_of(config, visits_of(config, rows, 0))


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("measure", "read"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", help="kind, kind:attacker, or the name of one search")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--num-threads", default="auto")
    parser.add_argument("--first-seed", type=int, default=0, help="other learners, other dice")
    args = parser.parse_args()
    if args.what == "read":
        read(args.folder)
    else:
        threads = int(args.num_threads) if args.num_threads.isdecimal() else args.num_threads
        measure(args.folder, args.only, args.scale, threads, args.first_seed)


if __name__ == "__main__":
    main()
