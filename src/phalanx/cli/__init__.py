"""The command `phalanx`: one file for each of its commands."""
