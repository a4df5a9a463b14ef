"""Compiling with Numba: rules, kernels, their cache, their threads. Nothing of any game."""
