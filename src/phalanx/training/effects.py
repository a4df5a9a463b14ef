"""When a setting of a run has an effect: told to people who give it where it has none."""

from phalanx.cage2.registration import CAGE2_ENVS
from phalanx.settings.fields import Only
from phalanx.training.scenario_config import HOSTS

RAY = Only("--runner ray", lambda run: run.runner == "ray")
POOL = Only("environments other than the compiled cage2", lambda run: run.env != "cage2")
POOL_OR_RAY = Only(
    "environments other than the compiled cage2, or --runner ray",
    lambda run: run.env != "cage2" or run.runner == "ray",
)
WORKERS = Only(
    "environments other than the compiled cage2",
    lambda run: run.env != "cage2" or run.num_envs_per_worker is not None,
)
CAGE2 = Only("the compiled cage2", lambda run: run.env == "cage2")
GAME = Only("cage2 and cyborg", lambda run: run.env in ("cage2", "cyborg"))
BELIEF = Only("--observation belief", lambda run: run.observation == "belief")
FORESEEN = Only(
    "--algo ppo with --observation belief, the built-in compiled networks, a critic that does not "
    "see the truth, and the game's own rewards",
    lambda run: (
        (run.env, run.algo, run.observation, run.critic_truth, run.reward, run.network)
        == ("cage2", "ppo", "belief", False, None, None)
        and (run.learner != "torch" and run.device != "cuda" and not run.compile)
    ),
)
IMPALA = Only("--algo impala", lambda run: run.algo == "impala")
NOT_A3C = Only("--algo ppo and impala", lambda run: run.algo != "a3c")
NORMALISED = Only(
    "environments other than CAGE-2, with --algo ppo and impala",
    lambda run: run.env not in CAGE2_ENVS and run.algo != "a3c",
)
IN_STEP = Only(
    "--algo ppo without --wait-for", lambda run: run.algo == "ppo" and run.wait_for == "all"
)
SAMPLERS = Only(
    "--algo impala on cage2, or --runner ray",
    lambda run: run.runner == "ray" or (run.algo == "impala" and run.env == "cage2"),
)
WORKFLOW = Only("--workflow", lambda run: run.workflow is not None)
GATE = Only(
    "--workflow with --alignment gate",
    lambda run: run.workflow is not None and run.alignment == "gate",
)
BUILT_IN = Only("the built-in networks", lambda run: run.network in (None, HOSTS))
NO_STEPS = Only("runs without --total-steps", lambda run: run.total_steps is None)
