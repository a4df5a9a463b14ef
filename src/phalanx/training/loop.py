"""Train a defender: collect, learn, record, until the budget is spent. Read this file first."""

import contextlib
import dataclasses
import math
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from phalanx.agents import AGENTS, agent_path
from phalanx.cage2.scenario.names import CAGE2_NAME, short_name
from phalanx.cage2.scenario.packed import unpack
from phalanx.compiled.rule import compile_s
from phalanx.configs import ZOO
from phalanx.display import progress_display, span
from phalanx.envs.auto import MANY
from phalanx.errors import RunError, WorkerError
from phalanx.learn.rollout import Stopped
from phalanx.settings.fields import without_effect
from phalanx.training.checkpoint import last_checkpoint, read_facts
from phalanx.training.config import TrainConfig
from phalanx.training.folder import RunFolder, open_new
from phalanx.training.going_on import check_same_settings, elapsed_before
from phalanx.training.on_cage2 import check_memory, with_attackers
from phalanx.training.recipe import Network, choose_num_envs, compile_cage2, compile_networks
from phalanx.training.run import Run
from phalanx.training.schedules import progress_of
from phalanx.training.teacher import name_of, open_teacher
from phalanx.training.trackers import Tracker, check_tracker
from phalanx.training.view import TrainingView


def train(
    config: TrainConfig,
    network: Network | None = None,
    on_update: Callable[[Run], None] = lambda run: None,
    progress: bool | None = None,
    teacher: object = None,
) -> Run:
    """Train until the budget is spent, or SIGINT or SIGTERM.

    run = phalanx.train(TrainConfig(red_agent="meander", total_episodes=20_000))

    network: factory(obs_size, truth_size, num_actions) of your own torch module, whose forward
        takes obs [rows, obs_size] and truth [rows, truth_size] and gives logits and values.
    on_update: is told of each update.
    progress: show how it is going, on standard error or below the notebook's cell; None: only in a
        notebook.
    teacher: a defender whose decisions are learnt too, any that `phalanx.evaluate` takes.
    """
    if teacher is not None:
        config = dataclasses.replace(config, teacher=name_of(teacher))
    progress = False if config.quiet else progress
    check_tracker(config.track)
    if config.resume is not None and not last_checkpoint(config.resume).is_file():
        raise RunError(
            f"there is no run with a checkpoint in {config.resume}; give a run folder to --resume"
        )
    if config.resume is None:
        config = with_attackers(config)
        start, teaching = find_start(config.start_from), open_teacher(config, teacher)
        folder = open_new(config.output_dir, config.name)
    else:
        folder = RunFolder(config.resume, goes_on=True)
    with contextlib.ExitStack() as at_end:
        at_end.callback(folder.close)
        at_end.callback(folder.remove_if_empty)  # while it is still ours
        if threading.current_thread() is threading.main_thread():  # as Ctrl-C until the loop begins
            before = signal.signal(signal.SIGTERM, signal.default_int_handler)
            at_end.callback(signal.signal, signal.SIGTERM, before)
        if config.resume is not None:
            config = _check_that_it_can_go_on(config, folder)
        elif folder.checkpoint.exists():
            path = folder.path
            raise RunError(f"{path} holds a run already; give another --name, or --resume {path}")
        for name, what in without_effect(config).items():
            print(f"phalanx: {name} has no effect here, it is for {what}", file=sys.stderr)
        is_chosen, measured = config.num_envs == "auto", ""
        compiled_s, plays_here = compile_s(), config.env == "cage2" and config.runner == "local"
        if plays_here:
            if not is_chosen:
                check_memory(config)
            compile_cage2(config, network)
        if is_chosen and config.env == "cage2":
            with progress_display(None, progress) as display:
                task = display.add_task("", total=None, note="")
                display.update(task, description="trying numbers of environments")
                size, speeds = choose_num_envs(config, network)
            config = dataclasses.replace(config, num_envs=size)
            measured = ", ".join(f"{n}: {speed / 1000:,.0f}" for n, speed in speeds.items())
            measured = f", by thousand turns/s measured here ({measured})"
        run = Run(config, folder, network)
        at_end.callback(run.recipe.close)
        if config.config is not None and config.config in ZOO.values():
            run.notes.append(
                f"settings for {config.env_name} as we tried them: configs/zoo/{config.config.name}"
                "; --config none for the defaults"
            )
        if is_chosen:
            run.notes.append(_choice(run, measured))
        for note in run.notes if not config.quiet else ():
            print(note)
        if not plays_here:
            compile_networks(run.config, run.learner.stepper)
        run.compile_s = compile_s() - compiled_s
        if config.resume is None:
            if start is not None:
                run.begin_with(start)
            if teaching is not None and run.taught is not None:
                run.taught.learn_from(teaching())
            folder.forget_rows()
            folder.write_config(run.config.as_dict(), run.notes)
        else:
            run.load()
        if config.track is not None:
            run.tracker = Tracker(config.track, folder.path.name, run.config.as_dict())
            at_end.callback(run.tracker.close)
        _loop(run, on_update, progress)
    return run


def _choice(run: Run, measured: str) -> str:
    """What `--n-envs auto` came to, and what that means."""
    size = run.config.num_envs
    chosen = f"--n-envs auto chose {size}{measured}"
    if run.config.algo != "ppo":  # whose runs depend on timing anyway
        return chosen
    if not measured:
        does = "waits" if size == MANY else "computes"
        return f"{chosen}, as everywhere for an environment that {does}"
    return (
        f"{chosen}; the choice depends on timing: give --n-envs {size} to get the same run from "
        "the same seed again"
    )


def _check_that_it_can_go_on(config: TrainConfig, folder: RunFolder) -> TrainConfig:
    """Before anything is started or written; with the number of environments that it had."""
    facts, _declared = read_facts(folder.checkpoint)
    had = facts.get("config", {})
    if config.num_envs == "auto":
        if type(had.get("num_envs")) is not int:
            raise RunError(f"{folder.checkpoint} does not say how many environments it has")
        config = dataclasses.replace(config, num_envs=had["num_envs"])
    config = dataclasses.replace(config, **{n: had[n] for n in config.left_open if n in had})
    if "foresight" not in had and config.foresight:
        config = dataclasses.replace(config, foresight=False)  # begun before there was any
    check_same_settings(folder.path, config, facts)
    its_own = unpack(facts.get("scenario", {}), config.scenario)
    config = dataclasses.replace(config, scenario=its_own)
    updates, episodes, steps = (
        int(facts.get(name, 0)) for name in ("updates", "episodes", "steps")
    )
    if progress_of(config, updates, episodes, steps, elapsed_before(facts)) >= 1:
        budget = "--total-episodes" if config.total_steps is None else "--total-steps"
        if progress_of(config, updates, episodes, steps, 0.0) < 1:
            budget = "--duration"
        raise RunError(f"{folder.path} is finished: {updates} updates; raise {budget}")
    return config


def find_start(name: str | None) -> Path | None:
    """The run, checkpoint or agent to start from."""
    if name is None:
        return None
    path = agent_path(name)
    if not last_checkpoint(path).is_file():
        agents = ", ".join(AGENTS)
        raise RunError(f"there is no run or checkpoint {path} to start from, nor one of {agents}")
    return path


def _loop(run: Run, on_update: Callable[[Run], None], progress: bool | None) -> None:
    """Sample, learn, sample, learn."""
    stopped = _Stop()
    limit_s = math.inf if run.config.duration is None else run.config.duration * 3600

    def over() -> bool:
        return stopped.asked or run.elapsed_s >= limit_s

    run.begin()
    for sampler in run.source.samplers:
        sampler.stop = over
    run.sampler.listen(run.record_fault)
    with _shown(run, progress) as show, stopped:
        try:
            while run.progress < 1 and not run.enough and not over():
                before = run.updates // run.config.checkpoint_every
                if run.step() is not False:
                    show()
                    on_update(run)
                if run.updates // run.config.checkpoint_every > before:
                    run.save()
        except Stopped:
            pass
        except WorkerError:  # what was learnt before environments failed too often is kept
            run.save()
            run.end("failed")
            raise
        run.rest()
        run.save()
    run.stopped = stopped.asked and run.progress < 1
    run.end("stopped" if run.stopped else "finished")


@contextlib.contextmanager
def _shown(run: Run, wanted: bool | None) -> Iterator[Callable[[], None]]:
    """What is trained and where; then, whenever it is called, how that is going."""
    view = TrainingView(run)
    with progress_display(None, wanted, view) as display:
        display.say(opening(run))
        if not display.is_shown:
            yield lambda: None
            return
        display.update(display.add_task("training", total=1.0, note=""))  # it may tell from now on
        yield view.look
        view.look(at_once=True)


def opening(run: Run) -> str:
    """`training with ppo on cage2, 512 environments, 200,000 episodes; run folder runs/first`."""
    c = run.config
    against = f" against {c.red_agent}" if c.env in ("cage2", "cyborg") else ""
    budget = f"{c.total_steps:,} steps" if c.total_steps else f"{c.total_episodes:,} episodes"
    limit = "" if c.duration is None else f", at most {span(3600 * c.duration)}"
    after = f"; goes on after update {run.updates:,}" if run.updates else ""
    env = c.env_name if c.scenario == CAGE2_NAME else f"scenario {short_name(c.scenario)}"
    return (
        f"training with {c.algo} on {env}{against}, {c.num_envs:,} environments, {budget}"
        f"{limit}; run folder {run.folder.path}{after}"
    )


class _Stop(contextlib.ExitStack):
    """Ctrl-C and SIGTERM end the run after the update that is under way."""

    asked = False

    def __enter__(self) -> "_Stop":
        if threading.current_thread() is threading.main_thread():  # others cannot be asked
            for number in (signal.SIGINT, signal.SIGTERM):
                self.callback(signal.signal, number, signal.signal(number, self._ask))
        return self

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
