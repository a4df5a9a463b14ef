"""An episode to look at, turn by turn, and where it went wrong."""
