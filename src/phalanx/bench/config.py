"""Settings of `phalanx bench`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from phalanx.cage2.settings import red_agent_weights
from phalanx.files import check_writable
from phalanx.settings.fields import Above, OneOf, Only, Within, checked
from phalanx.training.config import MAX_NETWORKS

SECONDS = {"sim": 0.3, "train": 2.0, "learner": 2.0, "runners": 1.0, "cluster": 2.0}
RUNNER_WORK = ("nothing", "computes", "waits", "one-slow", "cyborg", "images", "signals")
SIZES = (1, 1024, 4096, 65536, 1_000_000)

SIM = Only("phalanx bench sim", lambda bench: bench.what == "sim")
RUNNERS = Only("phalanx bench runners", lambda bench: bench.what == "runners")


@checked
@dataclass(frozen=True, kw_only=True)
class BenchConfig:
    """Measure the speed of simulator, training and runners, and of others beside them."""

    what: Annotated[str, OneOf(*SECONDS)] = field(default="sim", metadata={"positional": True})
    """what to measure: sim (beside the original, if installed), train, learner, runners, cluster"""
    num_envs: Annotated[tuple[int, ...], Within(1, MAX_NETWORKS), SIM] = SIZES
    """batch sizes of the simulator"""
    red_agent: Annotated[tuple[str, ...], SIM] = ("meander", "b_line")
    """attackers in the simulator"""
    beside: Annotated[Path | None, SIM] = None
    """measure the kernels of another checkout instead, in turn with these, by CPU time"""
    work: Annotated[tuple[str, ...], OneOf(*RUNNER_WORK), RUNNERS] = RUNNER_WORK
    """what environments do under runners"""
    rounds: Annotated[int, Within(1, 10_000)] = 5
    """each case is measured once a round, in turn with the others; the median counts"""
    seconds: Annotated[float | None, Above(0, 1e5)] = None
    """time per case and round; 0.3 for sim, 1 for runners, 2 for the others"""
    json: Path | None = None
    """also write the figures to this file"""

    def __post_init__(self) -> None:
        if self.seconds is None:
            object.__setattr__(self, "seconds", SECONDS[self.what])
        for spec in self.red_agent:
            red_agent_weights(spec)
        check_writable(self.json)
