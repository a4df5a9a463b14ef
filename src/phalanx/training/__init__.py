"""A training run: the loop, its folder, its checkpoints."""
