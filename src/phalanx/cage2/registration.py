"""The game's name in Gymnasium."""

import gymnasium

ENV_ID = "phalanx/Cage2-v0"
CAGE2_ENVS = ("cage2", "cyborg", ENV_ID)  # names under which the game is trained on


def register() -> None:
    """Let `gymnasium.make` and `gymnasium.make_vec` find the game; done by `import phalanx`."""
    if ENV_ID not in gymnasium.registry:
        gymnasium.register(
            ENV_ID,
            entry_point="phalanx.cage2.env:Cage2Env",
            vector_entry_point="phalanx.cage2.vector:Cage2VectorEnv",
        )
