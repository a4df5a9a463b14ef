"""The nearest tests of each module that is changed."""

# The nearest tests of a module, the quickest first.
TESTS: dict[str, str] = {
    "checkpoint": "test_checkpoint test_run_folder",
    "arrays_file": "test_checkpoint",
    "facts": "test_checkpoint test_run_folder",
    "run_folder": "test_rows test_run_folder test_training",
    "results": "test_run_folder test_cli test_evaluate",
    "flags": "test_flags test_settings test_cli",
    "config": "test_settings test_cli test_training",
    "settings": "test_settings test_cli",
    "settings_file": "test_settings",
    "trust": "test_settings",
    "tally": "test_tally test_training test_training_workflows",
    "recipe": "test_recipe test_training test_training_workflows",
    "run": "test_training test_training_workflows",
    "training": "test_training test_run_folder",
    "sources": "learn/test_rollout test_training",
    "cage2/saved_games": "test_checkpoint cage2/test_batch test_run_folder",
    "learn/a3c": "learn/test_a3c test_a3c",
    "learn/actor": "learn/test_pool_sampler test_train_env",
    "learn/collect": "learn/test_collect learn/test_following",
    "learn/compiled": "learn/test_ppo learn/test_plain learn/test_a3c test_training",
    "learn/gate": "learn/test_gate learn/test_gate_steps test_training_workflows",
    "learn/gp_ucb": "learn/test_gp_ucb",
    "learn/heads": "learn/test_heads learn/test_plain test_train_env",
    "learn/impala": "learn/test_metrics learn/test_impala test_training",
    "learn/mlp": "learn/test_mlp",
    "learn/networks": "learn/test_networks test_train_env",
    "learn/normalise": "learn/test_normalise test_train_env",
    "learn/points": "learn/test_points test_train_env",
    "learn/own_network": "test_training test_train_env",
    "learn/plain": "learn/test_plain test_training test_train_env",
    "learn/playing": "learn/test_following test_evaluate",
    "learn/policy": "learn/test_policy learn/test_mlp learn/test_ppo",
    "learn/pool_sampler": "learn/test_pool_rows learn/test_pool_sampler test_train_env",
    "learn/ppo": "learn/test_metrics learn/test_ppo learn/test_impala test_training",
    "learn/ppo_kernel": "learn/test_ppo",
    "learn/returns": "learn/test_impala learn/test_ppo",
    "learn/rollout": "learn/test_rollout learn/test_collect learn/test_pool_sampler test_training",
    "learn/sampler": "learn/test_collect learn/test_following test_training",
    "learn/shared": "learn/test_a3c test_a3c",
    "learn/stepper": "learn/test_ppo learn/test_plain test_training",
}
ENVS = (
    "answers", "arrived", "auto", "block", "channel", "closing", "factories", "faults", "first_try",
    "layout", "making", "nurse", "nursery", "objects", "places", "pool", "reset_mask", "serial",
    "settings", "shared_memory", "staff", "thread_time", "trial", "vector", "waiting", "worker",
    "workers",
)  # fmt: skip
TESTS |= {
    f"envs/{name}": "envs/test_pool envs/test_trial envs/test_faults envs/test_vector"
    for name in ENVS
}
TESTS["envs/auto"] = "envs/test_auto envs/test_pool"
TESTS["envs/thread_time"] = "envs/test_auto"
TESTS["envs/sb3"] = "envs/test_sb3"
TESTS["envs/answers"] = "envs/test_answers envs/test_pool"


def place_of(test: str) -> str:
    return f"tests/{test}.py"
