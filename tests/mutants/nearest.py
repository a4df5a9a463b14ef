"""The nearest tests of each module that is changed."""

WHOLE_RUNS = "training/test_training training/test_training_workflows"

# The nearest tests of a module, the quickest first.
TESTS: dict[str, str] = {
    "training/checkpoint": "training/test_checkpoint training/test_run_folder",
    "arrays_file": "training/test_checkpoint",
    "training/folder": "training/test_rows training/test_run_folder training/test_training",
    "files": "training/test_run_folder cli/test_cli play/test_evaluate",
    "settings/flags": "settings/test_flags settings/test_settings cli/test_cli",
    "training/config": "settings/test_settings cli/test_cli training/test_training",
    "settings/fields": "settings/test_settings cli/test_cli",
    "settings/yaml_file": "settings/test_settings",
    "trust": "settings/test_settings",
    "training/update_record": f"training/test_update_record {WHOLE_RUNS}",
    "training/recipe": f"training/test_recipe {WHOLE_RUNS}",
    "training/run": f"training/test_update_record {WHOLE_RUNS}",
    **dict.fromkeys(
        (
            "training/on_cage2",
            "training/schedules",
            "training/cage2_extension",
        ),
        f"training/test_recipe training/test_update_record {WHOLE_RUNS}",
    ),
    "training/on_pool": "training/test_train_env",
    "training/loop": "training/test_training training/test_run_folder",
    "training/sources": "training/test_sources training/test_training",
    "cage2/saved_games": "training/test_checkpoint cage2/test_batch training/test_run_folder",
    "learn/a3c": "learn/test_a3c training/test_a3c",
    "learn/compiled/actor": "learn/test_pool_sampler training/test_train_env",
    "learn/cage2/collect": "learn/cage2/test_collect learn/cage2/test_following",
    "learn/compiled/stepper": f"learn/test_ppo learn/test_torch learn/test_a3c {WHOLE_RUNS}",
    "learn/cage2/gate": f"learn/cage2/test_gate learn/cage2/test_gate_steps {WHOLE_RUNS}",
    "search/gp_ucb": "search/test_gp_ucb",
    "learn/torch/heads": "learn/test_heads learn/test_torch training/test_train_env",
    "learn/impala": "learn/test_metrics learn/test_impala training/test_training",
    "learn/compiled/mlp": "learn/test_mlp",
    "learn/torch/networks": "learn/test_networks learn/test_torch training/test_train_env",
    "learn/normalise": "learn/test_normalise training/test_train_env",
    "learn/compiled/distributions": "learn/test_ppo learn/test_torch learn/test_continuous",
    "learn/torch/stepper": "learn/test_torch training/test_training training/test_train_env",
    "learn/cage2/torch_sampler": "learn/test_torch training/test_training",
    "learn/cage2/greedy": "learn/cage2/test_following play/test_evaluate",
    "learn/cage2/all_orders": "learn/cage2/test_all_orders",
    "learn/cage2/choices": "learn/cage2/test_choices learn/cage2/test_collect",
    "learn/cage2/foresight": "learn/cage2/test_foresight",
    "learn/cage2/games": "learn/cage2/test_collect learn/cage2/test_following",
    "learn/compiled/policy": "learn/test_policy learn/test_mlp learn/test_ppo",
    "learn/pool_sampler": "learn/test_pool_rows learn/test_pool_sampler training/test_train_env",
    "learn/ppo": "learn/test_metrics learn/test_ppo learn/test_impala training/test_training",
    "learn/compiled/ppo_loss": "learn/test_ppo",
    "learn/returns": "learn/test_impala learn/test_ppo",
    "learn/rollout": f"learn/test_rollout learn/test_pool_sampler {WHOLE_RUNS}",
    "learn/cage2/sampler": f"learn/cage2/test_collect learn/cage2/test_following {WHOLE_RUNS}",
}
ENVS = (
    "auto",
    "block",
    "channel",
    "factories",
    "faults",
    "fork_server",
    "layout",
    "making",
    "pool",
    "processes",
    "received",
    "serial",
    "shared_memory",
    "thread_time",
    "trial",
    "vector",
    "waiting",
    "worker",
    "workers",
)
TESTS |= {
    f"envs/{name}": "envs/test_pool envs/test_trial envs/test_faults envs/test_vector"
    for name in ENVS
}
TESTS["reset_mask"] = "envs/test_vector cage2/test_vector"
TESTS["envs/starter"] = "test_system envs/test_faults"
TESTS["envs/auto"] = "envs/test_auto envs/test_pool"
TESTS["envs/thread_time"] = "envs/test_auto"
TESTS["envs/sb3"] = "envs/test_sb3"
TESTS["envs/block"] += " envs/test_answers"


def place_of(test: str) -> str:
    return f"tests/{test}.py"
