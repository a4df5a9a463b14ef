"""Trained agents that come with phalanx: one file each, numbers only.

    phalanx evaluate champion --leaderboard

docs/champion.md says how each was trained.
"""

from pathlib import Path

AGENTS = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.npz"))}


def agent_path(name: str | Path) -> Path:
    """The file of an agent that comes with phalanx; any other name is a path already."""
    return AGENTS.get(str(name).lower().replace("_", "-"), Path(name))
