"""How fast environments are stepped: our pool beside other runners, and training on top of it."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

from phalanx.bench import envs
from phalanx.bench.cases import Case, Open, measure, quotients, report
from phalanx.bench.config import RUNNER_WORK, BenchConfig
from phalanx.bench.stepping import our_pool, program, training
from phalanx.cage2 import cyborg
from phalanx.envs import Pool
from phalanx.envs.factories import AnyEnv, Factory
from phalanx.files import Facts
from phalanx.training.config import TrainConfig

OURS, FIRST, FIRST_EIGHTH = "phalanx", "phalanx, first n/4", "phalanx, first n/8"
AUTO = ", auto"
GYMNASIUM, SB3 = "Gymnasium AsyncVectorEnv", "SB3 SubprocVecEnv"
PUFFERLIB, TIANSHOU = "PufferLib", "tianshou SubprocVectorEnv"
TIANSHOU_FIRST = f"{TIANSHOU}, first n/4"
BARE = "no runner, processes alone"
FIXED, BY_CLOCK = "computes, fixed work", "computes, by clock"
PEERS = {  # runner: its name in benchmarks/peers.py
    GYMNASIUM: "gymnasium",
    SB3: "sb3",
    PUFFERLIB: "pufferlib",
    TIANSHOU: "tianshou",
    TIANSHOU_FIRST: "tianshou",
    BARE: "bare",
}
NO_SLOW, ONE_SLOW = "none slow", "one slow"
SLOWED = 10  # times
SEQUENTIAL, PARALLEL = "sequential", "parallel"
UPDATE_STEPS, EPOCHS, MINIBATCH, LEARNING_RATE = 16, 4, 128, 0.01
LEARN_STEPS = 8_000  # after which returns are compared

NumWorkers = int | Literal["auto"]
WORKERS: tuple[NumWorkers, ...] = (0, 1, 2, 4, "auto")


def case(work: str, runner: str, n: int, open: Open, **known: int) -> Case:
    """One runner with one kind of work."""
    return Case(runner, open, {"work": work, "runner": runner, "n_envs": n, **known})


def ours(
    work: str,
    env: Factory,
    n: int,
    workers: NumWorkers,
    *,
    first: int | None = None,
    **options: Any,
) -> Case:
    """Our pool; `first` is how many rows it waits for, if not for all."""
    runner = OURS if first is None else FIRST_EIGHTH if 8 * first <= n else FIRST
    name = runner + (AUTO if workers == "auto" else "")
    options["wait_for"] = "all" if first is None else first
    return case(work, name, n, partial(our_pool, env, n, workers, **options))


def theirs(
    runner: str,
    work: str,
    env: type[AnyEnv],
    n: int,
    workers: int | None = None,
    first: int | None = None,
) -> Case:
    """A peer; most have a worker for each environment."""
    workers, place = workers or n, f"{env.__module__}:{env.__qualname__}"
    way = partial(program, "peers.py", PEERS[runner], place, n, workers, first or n)
    return case(work, runner, n, way, workers=workers)


def nothing(n: int) -> list[Case]:
    """What is left is the runner itself."""
    work, env = "nothing", envs.Nothing
    return [
        *(ours(work, env, n, workers) for workers in WORKERS),
        *(theirs(runner, work, env, n) for runner in (GYMNASIUM, SB3, TIANSHOU)),
        *(theirs(PUFFERLIB, work, env, n, workers) for workers in (1, 2)),
    ]


def computes(n: int) -> list[Case]:
    """3 ms of Python in each step: fixed work, beside processes alone; and by the clock."""
    cases = []
    for work, env in ((FIXED, envs.Works), (BY_CLOCK, envs.Computes)):
        cases += [ours(work, env, n, workers) for workers in WORKERS]
        cases += [theirs(runner, work, env, n) for runner in (GYMNASIUM, SB3)]
        cases += [theirs(BARE, work, env, n, workers) for workers in (1, 2)]
    return cases


def waits(n: int) -> list[Case]:
    """A heavy tail of sleep: who takes the first rows that are ready does not wait for it."""
    work, env, first = "waits", envs.Waits, max(1, n // 4)
    return [
        ours(work, env, n, "auto", first=first),
        ours(work, env, n, "auto"),
        theirs(GYMNASIUM, work, env, n),
        theirs(TIANSHOU, work, env, n),
        theirs(TIANSHOU_FIRST, work, env, n, first=first),
    ]


def one_slow(n: int) -> list[Case]:
    """Sleeps of 1 ms everywhere, and then of 10 ms in one environment.

    Of 31 that are fast, batches of n/4 = 8 leave 7 rows waiting; small batches do not.
    """

    def slow_down_one(pool: Pool) -> None:
        pool.call("sleep_s=", SLOWED * envs.Paced.sleep_s, env_ids=[0])

    return [
        ours(work, envs.Paced, n, "auto", first=first, **options)
        for first in (max(1, n // 8), max(1, n // 4), None)
        for work, options in ((NO_SLOW, {}), (ONE_SLOW, {"prepare": slow_down_one}))
    ]


def original(n: int) -> list[Case]:
    """The original simulator of CAGE-2, where it is installed."""
    there = (0, 1, 2) if cyborg.is_installed() else ()
    return [ours("cyborg", cyborg.CyborgEnv, n, workers) for workers in there]


def images(n: int) -> list[Case]:
    """PPO on pictures of 64 x 64 pixels."""
    return [learns("images", "ppo", "Pictures", n, layout, 0) for layout in (SEQUENTIAL, PARALLEL)]


def signals(n: int) -> list[Case]:
    """IMPALA and PPO on an environment of 2 ms a step, in which something can be learnt."""
    return [
        learns("signals", algo, "Signals", n, layout, LEARN_STEPS if layout == PARALLEL else 0)
        for algo in ("ppo", "impala")
        for layout in (SEQUENTIAL, PARALLEL)
    ]


def learns(work: str, algo: str, env: str, n: int, layout: str, learn_steps: int) -> Case:
    """Training in this process alone, or with two workers and collecting while learning."""
    parallel = layout == PARALLEL
    config = TrainConfig(
        env=f"{envs.__name__}:{env}",
        algo=algo,
        num_envs=n,
        num_workers=2 if parallel else 0,
        overlap=parallel,
        update_steps=UPDATE_STEPS,
        k_epochs=EPOCHS,
        minibatch_size=MINIBATCH,
        learning_rate=LEARNING_RATE,
        total_steps=1_000_000_000,
    )
    return case(work, f"{algo}, {layout}", n, partial(training, config, "steps", learn_steps))


class Group(NamedTuple):
    """Cases that are measured in turn with each other, for each number of environments."""

    cases: Callable[[int], list[Case]]
    sizes: tuple[int, ...]


GROUPS = {
    "nothing": Group(nothing, (8, 32, 100)),
    "computes": Group(computes, (8,)),
    "waits": Group(waits, (8, 32)),
    "one-slow": Group(one_slow, (32,)),
    "cyborg": Group(original, (8,)),
    "images": Group(images, (32,)),
    "signals": Group(signals, (32,)),
}
assert tuple(GROUPS) == RUNNER_WORK


# --- the command ----------------------------------------------------------------------------------

COLUMNS = {
    "work": "work",
    "runner": "runner",
    "envs": "n_envs:d",
    "workers": "workers:d",
    "steps/s": "steps_per_s:,.0f",
    "CPU µs/step": "cpu_us_per_step:,.1f",
    "parent": "parent_cpu_share:.0%",
    "others": "others_cores:.1f",
    "return": "return:.1f",
}
LEGEND = "parent: its share of a core; others: cores that other people's processes used"


def main(config: BenchConfig) -> int:
    """Measure, print the table, write JSON if asked for."""
    groups = [GROUPS[work].cases(n) for work in config.work for n in GROUPS[work].sizes]
    skipped: list[str] = []
    if "cyborg" in config.work and not cyborg.is_installed():
        skipped.append(f"cyborg: {cyborg.HOW_TO_GET_IT}")
    rows = [row_of(case) for case in measure(groups, config, skipped)]
    skipped = list(dict.fromkeys(skipped))
    result = {"rows": rows, "ratios": side_by_side(rows), "skipped": skipped}
    title = "Steps a second of all environments (median of rounds)"
    report(config, title, COLUMNS, result, notes=[LEGEND], skipped=skipped)
    return 0


def row_of(case: Case) -> dict[str, str | float]:
    """Medians over rounds; the return of the last episodes, where something was learnt."""
    known = {name: fact for name, fact in case.facts.items() if name in ("workers", "return")}
    return {
        **case.labels,
        "steps_per_s": round(case.speed, 1),
        "cpu_us_per_step": round(case.median(lambda s: s.cpu_s / max(s.steps, 1) * 1e6), 2),
        "parent_cpu_share": round(case.median(lambda s: s.own_cpu_s / s.seconds), 4),
        "others_cores": round(case.median(lambda s: s.others_cores), 2),
        **known,
    }


def side_by_side(rows: list[Facts]) -> dict[str, float]:
    """Ratios of runners that were measured in turn with each other."""
    pairs: dict[str, tuple[float | None, float | None]] = {}

    def speed_of(work: str, n: int, runner: str, workers: int | None = None) -> float | None:
        """Steps a second with so many workers, or with its best number of them."""
        wanted: dict[str, object] = {"work": work, "n_envs": n, "runner": runner}
        if workers is not None:
            wanted["workers"] = workers
        found = (row["steps_per_s"] for row in rows if wanted.items() <= row.items())
        return max(found, default=None)

    for work, n in dict.fromkeys((row["work"], row["n_envs"]) for row in rows):
        speed = partial(speed_of, work, n)
        where, serial, auto = f"{work}, {n} environments", speed(OURS, 0), speed(OURS + AUTO)
        if work == "nothing":
            for runner in (GYMNASIUM, SB3, TIANSHOU, PUFFERLIB):
                for workers in (1, 2):
                    name = f"{where}: {workers} workers / {runner}"
                    pairs[name] = speed(OURS, workers), speed(runner)
            pairs[f"{where}: auto / serial"] = auto, serial
            pairs[f"{where}: 4 workers / 2 workers"] = speed(OURS, 4), speed(OURS, 2)
        elif work in (FIXED, BY_CLOCK, "cyborg"):
            for workers in (1, 2, 4):
                pairs[f"{work}: {workers} workers / serial"] = speed(OURS, workers), serial
            for runner in (OURS + AUTO, GYMNASIUM, SB3):
                pairs[f"{work}: {runner} / serial"] = speed(runner), serial
            pairs[f"{work}: processes alone, 2 / 1"] = speed(BARE, 2), speed(BARE, 1)
            pairs[f"{work}: 2 workers / 2 processes alone"] = speed(OURS, 2), speed(BARE, 2)
        elif work == "waits":
            first = speed(FIRST + AUTO)
            for runner in (GYMNASIUM, TIANSHOU, TIANSHOU_FIRST):
                pairs[f"{where}: first n/4 / {runner}"] = first, speed(runner)
            pairs[f"{where}: first n/4 / never waiting"] = first, n / envs.MEAN_WAIT_S
        elif work == NO_SLOW:
            names = {FIRST_EIGHTH: "first n/8", FIRST: "first n/4", OURS: "synchronous"}
            for runner, name in names.items():
                unslowed, slowed = (speed_of(w, n, runner + AUTO) for w in (NO_SLOW, ONE_SLOW))
                if unslowed and slowed:
                    pairs[f"one of {n} slowed: share lost, {name}"] = unslowed - slowed, unslowed
        for algo in ("ppo", "impala"):
            parallel, sequential = (speed(f"{algo}, {way}") for way in (PARALLEL, SEQUENTIAL))
            pairs[f"{work}: {algo}, parallel / sequential"] = parallel, sequential
    learnt = {row["runner"]: row for row in rows if "return" in row}
    ppo, impala = (learnt.get(f"{algo}, {PARALLEL}") for algo in ("ppo", "impala"))
    if ppo and impala:
        speeds = impala["steps_per_s"], ppo["steps_per_s"]
        pairs["signals: impala / ppo, both parallel"] = speeds
        if ppo["return"] > 0:
            pairs["signals: return of impala / ppo"] = impala["return"], ppo["return"]
    return quotients(pairs)
