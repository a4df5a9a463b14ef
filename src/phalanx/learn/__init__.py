"""Learning: takes arrays, knows torch and the compiled kernels, and nothing of the commands."""
