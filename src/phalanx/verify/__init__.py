"""Recorded games of the original, replayed."""
