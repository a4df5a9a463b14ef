"""What learning on CAGE-2 adds: its own samplers, greedy episodes, the compliance gate."""
