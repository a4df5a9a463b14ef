"""A web app for one person on one machine: runs, replays, and a game to play."""
