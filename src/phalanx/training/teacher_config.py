"""Settings of a teacher: a defender whose decisions are learnt besides the run's own games."""

from dataclasses import dataclass
from typing import Annotated

from phalanx.settings.fields import Above, Only, Within, checked, section

TAUGHT = Only(
    "--algo ppo on the compiled cage2, without --runner ray and --workflow",
    lambda run: (run.env, run.algo, run.runner, run.workflow) == ("cage2", "ppo", "local", None),
)
TEACHER = Only("--teacher", lambda run: run.teacher is not None)


@checked
@dataclass(frozen=True, kw_only=True)
class TeacherConfig:
    """Whose decisions are learnt, how many, and how much they count."""

    section("teacher", rarely=True)
    teacher: Annotated[str | None, TAUGHT] = None
    """a defender whose decisions are learnt too: champion, champion+plan, a run, a file, a script,
    or module:factory of your own; it plays before the training begins"""
    teacher_episodes: Annotated[int, Within(1, 1_000_000), TEACHER] = 400
    """episodes that it plays, of the run's attackers, horizon and rules"""
    teacher_steps: Annotated[int, Within(1, 10_000), TEACHER] = 16
    """gradient steps on its decisions in each update, a minibatch each"""
    teacher_weight: Annotated[float, Above(0, 1e6), TEACHER] = 1.0
    """what a decision counts at the start, beside an advantage of one standard deviation"""
    final_teacher_weight: Annotated[float, Within(0, 1e6), TEACHER] = 0.0
    """and at the end; linear in between"""
