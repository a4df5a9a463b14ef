"""What a training waits for, in one sentence, and what to try."""

from typing import NamedTuple

from phalanx.show.profile.profile import MAIN, Profile
from phalanx.stopwatch import COPYING, IDLE, LEARNING, LOGGING, POLICY, SIMULATOR, WAITING
from phalanx.training.time_split import Split

BUSY = 0.7  # of a worker's time: then there is little to gain by waking it faster
CROWDED = 0.5  # cores that others keep busy: then figures mean little


class Verdict(NamedTuple):
    sentence: str
    advice: list[str]
    """what to try, the best first"""


def bottleneck(seen: Profile) -> Verdict:
    """What takes most of the time of the thread on which the others wait."""
    if MAIN not in seen.shares:  # a3c: all workers do the same
        return _of_thread(seen, "each worker", _mean(list(seen.shares.values())))
    own = seen.shares[MAIN]
    part, share = _largest(own)
    if part != WAITING:
        return _of_thread(seen, "the training", own)
    samplers = _those(seen, "sampler ")
    if not samplers:
        return _waiting_in_step(seen, share)
    theirs = _mean(samplers)
    inner, inner_share = _largest(theirs)
    if inner == WAITING and seen.num_workers:
        waits = f"The learner waits {share:.0%} of its time for rollouts"
        return _of_workers(seen, waits, inner_share)
    words = {SIMULATOR: "in the environments", POLICY: "on choosing actions", COPYING: "on copying"}
    verdict = Verdict(
        f"The learner waits {share:.0%} of its time for rollouts, and samplers spend "
        f"{inner_share:.0%} of theirs {words.get(inner, inner)}.",
        _advice(seen, inner),
    )
    return _percent(verdict)


def _of_thread(seen: Profile, who: str, split: Split) -> Verdict:
    part, share = _largest(split)
    what = {
        SIMULATOR: "spends {} of its time in the environments",
        POLICY: "spends {} of its time on choosing actions",
        COPYING: "spends {} of its time on copying rows and weights",
        LEARNING: "spends {} of its time on learning",
        LOGGING: "spends {} of its time on tables and checkpoints",
        IDLE: "has nothing to do for {} of its time",
    }[part].format(f"{share:.0%}")
    sentence = f"{who[0].upper()}{who[1:]} {what}."
    return _percent(Verdict(sentence, _advice(seen, part)))


def _waiting_in_step(seen: Profile, share: float) -> Verdict:
    if seen.num_workers:
        return _of_workers(seen, "The training", share)
    if seen.config.runner == "ray":
        sentence = f"The training waits {share:.0%} of its time for samplers on Ray."
        return _percent(Verdict(sentence, ["more --num-samplers, or --algo impala"]))
    sentence = f"The training waits {share:.0%} of its time for its other threads."
    advice = ["larger --minibatch-size: fewer meetings of all threads"]
    if seen.others_cores > CROWDED:
        advice.insert(0, f"--num-threads {max(1, seen.threads - 1)}: other programs need the cores")
    return _percent(Verdict(sentence, advice))


def _of_workers(seen: Profile, who: str, share: float) -> Verdict:
    """Whether workers are at work meanwhile, or on their way to it."""
    busy = _mean(_those(seen, "worker "))[SIMULATOR]
    wait = f"{who}; the sampler waits" if who != "The training" else f"{who} waits"
    sentence = f"{wait} {share:.0%} of its time for workers, which step {busy:.0%} of theirs."
    if busy >= BUSY:
        advice = ["a faster environment"]
        if seen.num_workers < seen.cores:
            advice.insert(0, f"--num-workers {seen.cores}")
        return _percent(Verdict(sentence, advice))
    advice = ["more --n-envs: each worker steps more for each time that it is woken"]
    if seen.config.wait_for == "all":
        advice.append("--wait-for half of --n-envs, if some environments are slower than others")
    advice.append("--num-workers 0, if a step takes only microseconds")
    return _percent(Verdict(sentence, advice))


def _advice(seen: Profile, part: str) -> list[str]:
    c = seen.config
    spare = [f"--num-threads {seen.cores}"] if seen.threads < seen.cores else []
    if part == LEARNING:
        advice, is_a3c = [*spare], c.algo == "a3c"
        if not is_a3c and c.k_epochs > 1:
            advice.append(f"fewer --k-epochs than {c.k_epochs}")
        advice.append("more --update-steps" if is_a3c else "larger --minibatch-size")
        return advice + ["smaller --hidden"] * (c.network is None)
    if part == POLICY:
        return [*spare, "smaller --hidden", "more --n-envs: larger batches cost less each"]
    if part == COPYING:
        return ["more --n-envs: a step of many costs little more than one of few"]
    if part == LOGGING:
        return ["larger --checkpoint-every", "a faster disk for --output-dir"]
    if part == SIMULATOR and c.env == "cage2":
        lighter = ["--observation history: beliefs cost most"] if c.observation == "belief" else []
        return [*spare, *lighter, "this is the game itself: few do better"]
    if part == SIMULATOR and not seen.num_workers:
        return [f"--num-workers {seen.cores}, if a step takes long", "a faster environment"]
    return ["a faster environment"]


def _largest(split: Split) -> tuple[str, float]:
    part = max(split, key=lambda name: split[name])
    return part, split[part]


def _those(seen: Profile, prefix: str) -> list[Split]:
    """The samplers or the workers, without threads that help them."""
    return [split for name, split in seen.shares.items() if name.removeprefix(prefix).isdigit()]


def _mean(splits: list[Split]) -> Split:
    return {part: sum(one[part] for one in splits) / len(splits) for part in splits[0]}


def _percent(verdict: Verdict) -> Verdict:
    return verdict._replace(sentence=verdict.sentence.replace("%", " %"))
