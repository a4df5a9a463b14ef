"""Settings of `phalanx train`."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from phalanx.agents import AGENTS
from phalanx.cage2.rules.scenario import DEFAULT_RULES
from phalanx.cage2.scenario.names import as_named
from phalanx.cage2.settings import (
    DEFAULT_PRIOR,
    DEFAULT_RED_AGENTS,
    MAX_HORIZON,
    MAX_THREADS,
    OBSERVATIONS,
    ORIGINAL_RED_AGENTS,
    original_red_agent_weights,
    prior_weights,
    red_agent_weights,
    rule_set_number,
)
from phalanx.cage2.workflow import ALIGNMENTS, COMPLIANCE_RULES, parse_order
from phalanx.configs import NO_CONFIG, zoo_path
from phalanx.errors import ConfigError
from phalanx.files import Facts
from phalanx.importing import place_of
from phalanx.settings.fields import (
    Above,
    FolderName,
    OneOf,
    OrWord,
    Within,
    by_env,
    checked,
    section,
    values_of,
)
from phalanx.training.effects import (
    BELIEF,
    BUILT_IN,
    CAGE2,
    FORESEEN,
    GAME,
    GATE,
    IMPALA,
    IN_STEP,
    NO_STEPS,
    NORMALISED,
    NOT_A3C,
    POOL,
    POOL_OR_RAY,
    RAY,
    SAMPLERS,
    WORKERS,
    WORKFLOW,
)
from phalanx.training.scenario_config import checked_scenario
from phalanx.training.teacher_config import TeacherConfig

MAX_NETWORKS = 100_000_000
MOST_LAYERS = 16
NOT_SAVED = ("resume", "config", "output_dir", "name", "track", "quiet")  # each run has its own
TASKS = {"continuous", "images"}  # with defaults of their own for ppo


@checked
@dataclass(frozen=True, kw_only=True)
class TrainConfig(TeacherConfig):
    """Train a policy, on CAGE-2 or any Gymnasium environment.

    In step on CAGE-2, equal settings and seeds give equal weights, --resume goes on bit for bit;
    elsewhere it begins new episodes. What samples ahead (--algo impala, a3c) depends on speed.
    """

    section("game")
    env: str | Callable[[], object] = "cage2"
    """cage2, a Gymnasium id such as CartPole-v1, module:factory, or cyborg (the original); from
    Python also a function that builds one environment"""
    red_agent: Annotated[str, GAME] = by_env(DEFAULT_RED_AGENTS, ORIGINAL_RED_AGENTS)
    """attacker: b_line, meander, sleep, b_line_detour, meander_rescan, coin, or a mixture"""
    horizon: Annotated[int, Within(1, MAX_HORIZON), GAME] = 100
    """turns of an episode"""
    rules: Annotated[str, GAME] = DEFAULT_RULES
    """rule set: 2.1-final, or 2.1-leaderboard as the challenge was scored"""
    observation: Annotated[str, OneOf(*OBSERVATIONS), GAME] = "belief"
    """what the actor sees: bits (the 52), history (and what blue remembers), memory (more of it),
    belief (the exact chances of what is hidden); truth is what no defender can see"""

    scenario: Annotated[str, GAME] = "cage2"
    """network: cage2, a file (docs/scenarios.md), or many, of which each episode draws its own: a
    folder of files, or random:seed=1,users=3-8"""

    section("game", rarely=True)
    reward: Annotated[str | None, CAGE2] = None
    """a reward of your own, file.py:function (docs/scenarios.md); returns stay the scenario's,
    those under your reward are logged as own_return"""
    green: Annotated[float | None, Within(0, 1), GAME] = None
    """the chance that green acts in a turn: 1 is the original's GreenAgent; none if not given"""
    prior: Annotated[str, BELIEF] = DEFAULT_PRIOR
    """attackers that a belief expects, and how likely each is before anything is seen"""
    actions: Annotated[str, OneOf("effective", "useful", "all"), CAGE2] = "effective"
    """useful: leave out actions that can never help; effective: also those that by what is shown of
    a belief can change and show nothing in this turn; or all"""
    critic_truth: Annotated[bool | None, CAGE2] = None
    """let the critic see the true state while training; if not given, unless it sees a belief"""
    foresight: Annotated[bool | None, FORESEEN] = None
    """take the luck of red's dice out of what is learnt: a turn counts as it does on average over
    all that the belief says can happen; if not given, where that can be done"""
    turn_weights: Annotated[str, OneOf("leaderboard", "flat"), CAGE2] = "leaderboard"
    """leaderboard: a reward counts once for each horizon (30, 50, 100) that it is in; or flat"""
    restore_curriculum: Annotated[float, Within(0, 1), CAGE2] = 0.4
    """share of the run in which the price of Restore rises from a fifth to the whole"""
    condition: Annotated[tuple[float, ...], Within(-1e6, 1e6), CAGE2] = ()
    """numbers put after every observation, such as the 25 that name an order of repair"""

    section("budget")
    total_episodes: Annotated[int | None, Within(1, 10**12), NO_STEPS] = by_env(
        100_000, None, aliases=("--episodes",)
    )
    """when to stop"""
    total_steps: Annotated[int | None, Within(1, 10**14)] = by_env(
        None, 500_000, aliases=("--steps",)
    )
    """when to stop, in steps of all environments; takes precedence over --total-episodes"""
    duration: Annotated[float | None, Above(0, 1e6)] = None
    """stop after so many hours of training at the latest, those before --resume included; schedules
    follow the time, so that the weights depend on this machine's speed"""

    section("algorithm")
    algo: Annotated[str, OneOf("", "ppo", "impala", "a3c")] = ""
    """ppo, impala (samplers out of step, V-trace), or a3c (workers that share weights); ppo if not
    given, with --runner ray impala"""
    learning_rate: Annotated[float, Above(0, 10)] = by_env(
        1e-3, 1e-3, impala=(1e-3, 2e-3), a3c=(1e-3, 3e-3), images=3e-3, aliases=("--lr",)
    )
    """of the optimiser, at the start"""
    hidden: Annotated[tuple[int, ...], Within(1, 8192), BUILT_IN] = (64, 64)
    """hidden layers of actor and critic"""
    seed: Annotated[int, Within(0, 2**64 - 1)] = 0
    """the only source of chance"""

    section("algorithm", rarely=True)
    final_learning_rate: Annotated[float, Within(0, 10)] = by_env(1e-5, 0.0)
    """learning rate at the end; linear in between"""
    update_steps: Annotated[int, Within(1, 10**6)] = by_env(
        100, 128, impala=(100, 32), a3c=(100, 8)
    )
    """steps of each environment between updates"""
    k_epochs: Annotated[int, Within(1, 1000), NOT_A3C] = by_env(4, 8, impala=(1, 1), images=1)
    """passes over each rollout"""
    minibatch_size: Annotated[int, Within(1, 10**9), NOT_A3C] = by_env(
        1024, 256, impala=(2048, 512), images=64
    )
    """rows of a gradient step"""
    gamma: Annotated[float, Within(0, 1)] = 0.99
    """discount of a turn"""
    gae_lambda: Annotated[float, Within(0, 1)] = 0.95
    """decay of advantage estimation"""
    clip: Annotated[float, Above(0, 1e9)] = 0.2
    """how far a probability may move in an update"""
    entropy: Annotated[float, Within(0, 1e3)] = by_env(0.01, 0.01, continuous=0.0)
    """weight of the entropy at the start"""
    final_entropy: Annotated[float, Within(0, 1e3)] = by_env(0.0005, 0.0)
    """and at the end"""
    value_weight: Annotated[float, Within(0, 1e6)] = 0.5
    """weight of the critic's loss"""
    max_grad_norm: Annotated[float, Above(0, 1e9)] = 0.5
    """bound of the gradient's norm"""
    target_kl: Annotated[float | None, Above(0, 1e6), NOT_A3C] = None
    """end an update's epochs when the policy has moved so far"""
    reward_scale: Annotated[float, Above(0, 1e6)] = by_env(
        0.1, 1.0, impala=(0.1, 0.1), a3c=(0.1, 1.0)
    )
    """factor of the learner's rewards"""
    normalize_observation: Annotated[bool, NORMALISED] = by_env(False, True)
    """let networks see vectors, not images, by their distance from the mean, in deviations"""
    normalize_reward: Annotated[bool, NORMALISED] = by_env(False, True)
    """divide the learner's rewards by the deviation of discounted returns so far"""
    first_deviation: Annotated[float, Above(0, 1e3), POOL] = 1.0
    """continuous actions: deviation with which they are drawn at the start, in half widths of their
    range"""
    noise_memory: Annotated[float, Within(0, 0.999), POOL] = 0.0
    """continuous actions: how much of a step's noise is left in the next one; near 1, what is tried
    lasts for many steps, for tasks in which a short push leads nowhere"""
    replay: Annotated[int, Within(0, 100), IMPALA] = 0
    """impala: past rollouts to learn from again for each new one"""
    rho_bar: Annotated[float, Within(0, 1e6), IMPALA] = 1.0
    """impala: bound of the importance weights of values"""
    c_bar: Annotated[float, Within(0, 1e6), IMPALA] = 1.0
    """impala: bound of how far they are passed back"""
    pg_rho_bar: Annotated[float, Above(0, 1e6), IMPALA] = 1.0
    """impala: bound of the importance weights of the policy's gradient"""
    network: str | None = None
    """hosts: weights are shared over hosts, for any network (docs/random-networks.md); or a torch
    network of your own, as module:factory (docs/recipes/own-network.md)"""
    learner: Annotated[str, OneOf("auto", "compiled", "torch")] = "auto"
    """compiled: fused kernels on the CPU; torch: plain autograd, for cuda and your own networks"""
    device: Annotated[str, OneOf("auto", "cpu", "cuda")] = "auto"
    """cpu or cuda; auto: cuda for a network of your own if there is one, else cpu"""
    compile: bool = False
    """compile the torch network (torch.compile)"""

    section("workers")
    num_envs: Annotated[int | str, Within(1, MAX_NETWORKS), OrWord("auto")] = by_env(
        512, "auto", aliases=("--n-envs",)
    )
    """environments side by side; auto: the fastest number by a trial (on which results depend)"""
    num_workers: Annotated[int | str, Within(0, 1024), OrWord("auto"), WORKERS] = "auto"
    """processes that step environments other than CAGE-2; 0: this one; auto: by a short trial"""
    num_threads: Annotated[int | str, Within(1, MAX_THREADS), OrWord("auto")] = "auto"
    """threads that play and learn; results do not depend on it"""

    section("workers", rarely=True)
    num_envs_per_worker: Annotated[int | None, Within(1, MAX_NETWORKS)] = None
    """sets --n-envs to this times --num-workers (with ray, times --num-samplers)"""
    wait_for: Annotated[int | str, Within(1, MAX_NETWORKS), OrWord("all"), POOL] = "all"
    """rows that the policy waits for; fewer than all never wait for a slow environment"""
    overlap: Annotated[bool, IN_STEP] = by_env(False, True)
    """collect the next rollout while learning from the last, one update old; not with --wait-for"""
    num_samplers: Annotated[int, Within(1, 10_000), SAMPLERS] = 2
    """impala on CAGE-2: threads that play, each its share of the networks; ray: actors"""
    sync_every: Annotated[int, Within(1, 10**6), NOT_A3C] = 1
    """rollouts after which samplers take new weights; no ppo batch is older than that"""
    step_timeout: Annotated[float, Above(0, 1e6), POOL] = 60.0
    """seconds after which an environment's step is taken to hang"""
    max_restarts: Annotated[int, Within(0, 10**9), POOL_OR_RAY] = 20
    """failed environments and workers that are replaced before the run gives up"""

    section("cluster")
    runner: Annotated[str, OneOf("local", "ray")] = "local"
    """where environments are played: local (this machine), or ray (samplers on a cluster)"""

    section("cluster", rarely=True)
    ray_address: Annotated[str | None, RAY] = None
    """auto or HOST:PORT of a running Ray cluster; a small one on this machine if not given"""
    cpus_per_sampler: Annotated[float | None, Above(0, 1024), RAY] = None
    """ray: CPUs that a sampler reserves; an even share of the cluster's if not given, at most 1"""

    section("workflow")
    workflow: str | None = None
    """order of repair to follow, such as defender,op_server,enterprise,op_host,user; or all"""
    alignment_lambda: Annotated[float, Within(0, 1e6), WORKFLOW] = 10.0
    """what following the workflow is worth in a whole episode; 0 measures compliance only"""

    section("workflow", rarely=True)
    alignment: Annotated[str, OneOf(*ALIGNMENTS), WORKFLOW] = "delta"
    """delta: an episode's sum is lambda times its compliance; per_fix: ± lambda/20 for each fix;
    gate: what a fix gains and costs is moved until compliance stays just above its threshold"""
    gate_start: Annotated[float, Within(0, 1), GATE] = 0.4
    """gate: share of the run in which fixes are free, and blue learns to defend"""
    defiance: Annotated[float, Within(0, 1e6), GATE] = 0.0
    """gate: points that a fix costs, on top, of a host that red holds while it holds one of a
    better type; this price rises from the first episode on and is full at gate-start"""
    compliance_rule: Annotated[str, OneOf(*COMPLIANCE_RULES), WORKFLOW] = "host"
    """host: the target is infected, and nothing of a better type; type: as earlier systems judged,
    to compare with them: 24 orders forbid every fix (User0 is always infected), and a healthy
    neighbour of an infected host may be restored"""
    compliance_threshold: Annotated[float, Within(0, 1), WORKFLOW] = 0.9
    """compliance that a policy must reach to count as following its workflow"""
    min_fixes: Annotated[float, Within(0, 1e6), WORKFLOW] = 1.0
    """... and fixes per episode: one lucky fix is not enough"""

    section("start")
    config: Path | None = None
    """settings to begin with: a YAML file, or champion, champion-final, leaderboard, final-rules,
    plain-ppo or quick, which come with phalanx; flags take precedence. If not given, what was tried
    for a well-known --env with ppo (configs/zoo); none: nothing but the defaults"""
    start_from: str | None = None
    """begin with what this run, exported file or agent (champion) has learnt; its networks must
    have the same sizes"""
    resume: Path | None = None
    """continue the run in this folder; of the other settings only the budget may change"""

    section("output")
    name: Annotated[str | None, FolderName()] = None
    """name of the run folder; the time if not given"""
    output_dir: Path = Path("runs")
    """where run folders are made"""
    quiet: bool = False
    """show no progress; results and warnings are told all the same"""

    section("output", rarely=True)
    track: Annotated[str | None, OneOf("wandb", "trackio")] = None
    """send the columns of updates.csv to Weights & Biases too, or to trackio on this machine"""
    checkpoint_every: Annotated[int, Within(1, 10**9)] = by_env(50, 50, a3c=(50, 1000))
    """updates between checkpoints"""

    def __post_init__(self) -> None:
        if not self.algo:
            object.__setattr__(self, "algo", "impala" if self.runner == "ray" else "ppo")
        left_open = self.left_open
        for item in dataclasses.fields(self):
            if item.name in left_open:
                continue  # until the environment is open
            if item.name == "total_steps" and self.total_episodes is not None:
                continue  # the budget is given in episodes
            if "cage2" in item.metadata and getattr(self, item.name) is None:
                object.__setattr__(self, item.name, self.default_by_env(item.metadata))
        if self.env == "cage2" and self.critic_truth is None:
            object.__setattr__(self, "critic_truth", self.observation not in ("belief", "truth"))
        if self.foresight is None and FORESEEN.holds(self):
            object.__setattr__(self, "foresight", True)
        if self.num_envs_per_worker is not None:
            workers = self.num_samplers if self.runner == "ray" else self.num_workers
            if not isinstance(workers, int) or workers < 1:
                raise ConfigError("num_envs_per_worker needs --num-workers as a number, 1 or more")
            object.__setattr__(self, "num_envs", workers * self.num_envs_per_worker)
        if self.start_from is not None and self.start_from not in AGENTS:  # found from anywhere
            object.__setattr__(self, "start_from", str(Path(self.start_from).absolute()))
        if not self.hidden or len(self.hidden) > MOST_LAYERS:
            raise ConfigError(
                f"hidden must be 1 to {MOST_LAYERS} layer sizes such as 64,64, got {self.hidden}"
            )
        known = original_red_agent_weights if self.env == "cyborg" else red_agent_weights
        known(self.red_agent)
        prior_weights(self.prior)
        rule_set_number(self.rules)
        module, colon, factory = self.env_name.partition(":")
        if not module or (colon and not factory):
            raise ConfigError(
                f"env is {self.env!r:.80}: give cage2, cyborg, a Gymnasium id such as CartPole-v1, "
                "or module:factory"
            )
        self._check_runner()
        object.__setattr__(self, "scenario", checked_scenario(self))
        if self.workflow not in (None, "all"):
            parse_order(str(self.workflow))
        if self.workflow is not None and self.env != "cage2":
            raise ConfigError(
                f"--workflow is for the compiled CAGE-2, not for --env {self.env_name}; its "
                "policies can be judged in the original: phalanx evaluate RUN --simulator cyborg"
            )

    @staticmethod
    def own_file(flags: Facts) -> Path | None:
        """The file of settings that flags ask for: theirs, or what was tried for their --env."""
        given = flags.get("config")
        if given is not None:
            return None if str(given) == NO_CONFIG else given
        is_ppo = flags.get("algo", "ppo") == "ppo" and flags.get("runner", "local") == "local"
        return zoo_path(flags.get("env")) if is_ppo else None

    @property
    def left_open(self) -> tuple[str, ...]:
        """Settings that were not given, and that the environment's kind of task decides."""
        if self.env == "cage2" or self.algo != "ppo" or self.runner != "local":
            return ()
        by_task = [item.name for item in dataclasses.fields(self) if TASKS & item.metadata.keys()]
        return tuple(name for name in by_task if getattr(self, name) is None)

    def for_task(self, kind: str) -> "TrainConfig":
        """With what is best for this kind of task wherever nothing was given."""
        choices = {item.name: item.metadata for item in dataclasses.fields(self)}
        chosen = {n: choices[n].get(kind, choices[n]["other"]) for n in self.left_open}
        return dataclasses.replace(self, **chosen)

    def default_by_env(self, choices: Mapping[str, Any]) -> object:
        pair = choices.get(self.algo, (choices["cage2"], choices["other"]))
        return pair[0] if self.env == "cage2" else pair[1]

    def _check_runner(self) -> None:
        workers = self.num_workers
        if self.runner == "ray" and (self.algo == "a3c" or self.num_envs == "auto"):
            raise ConfigError(
                "--runner ray needs --algo ppo or impala, and the number of environments: give "
                "--n-envs, or --num-samplers and --num-envs-per-worker"
            )
        if self.env == "cage2" and self.algo == "a3c":
            raise ConfigError(
                "--algo a3c is for environments in worker processes; on the compiled CAGE-2 use "
                "ppo or impala, or give --env phalanx/Cage2-v0"
            )
        if self.algo == "a3c" and (workers == 0 or self.device == "cuda" or self.wait_for != "all"):
            raise ConfigError(
                "--algo a3c computes in its worker processes, on the CPU, all environments of a "
                "worker in step: give --num-workers 1 or more, and no --device cuda or --wait-for"
            )

    @property
    def normalizes_observation(self) -> bool:
        return bool(self.normalize_observation) and NORMALISED.holds(self)

    @property
    def normalizes_reward(self) -> bool:
        return bool(self.normalize_reward) and NORMALISED.holds(self)

    @property
    def total_updates(self) -> int:
        """Updates of the whole run, for environments whose episodes have a known length."""
        steps = self.total_steps or int(self.total_episodes or 0) * self.horizon
        return max(1, -(-steps // (int(self.num_envs) * self.update_steps)))

    def as_dict(self) -> dict[str, object]:
        """The settings as plain values, as config.yaml has them."""
        lists = {"hidden": list(self.hidden), "condition": list(self.condition)}
        words = {"env": self.env_name, "scenario": as_named(self.scenario)}
        return values_of(self, but=NOT_SAVED) | lists | words

    @property
    def env_name(self) -> str:
        """The environment in words; a function by its place, if that is how it is found again."""
        return self.env if isinstance(self.env, str) else place_of(self.env)
