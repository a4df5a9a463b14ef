"""Runs, searches and sweeps as one page."""
