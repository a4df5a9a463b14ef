"""Damaged and hostile files, given to phalanx as a user would: `python -m tests.fuzz`.

A case is made from its kind and number alone, so each that fails can be played again by itself.
"""
