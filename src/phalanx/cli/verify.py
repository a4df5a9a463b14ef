"""The command `phalanx verify`: how many steps were replayed, and where the first one differs."""

import dataclasses

from phalanx.files import write_json
from phalanx.verify.config import VerifyConfig
from phalanx.verify.replay import GAMES, verify


def main(config: VerifyConfig) -> int:
    """Print episodes, steps, mismatches and the first of them; exit code 1 if there is one."""
    result = verify(config.folder or GAMES / (config.rules or ""), config.rules)
    if config.json is not None:
        write_json(config.json, dataclasses.asdict(result))
    print(
        f"rules {result.rules}: {result.episodes} episodes, {result.steps} steps, "
        f"{result.mismatches} mismatches"
    )
    if result.first_mismatch is not None:
        print(f"first mismatch: {result.first_mismatch}")
        fields = ", ".join(f"{name} on {n}" for name, n in result.by_field.items())
        episodes = result.broken_episodes
        print(f"steps that differ: {result.mismatches}, in {episodes} episodes; {fields}")
    if result.reused_pids:
        print(
            f"{result.reused_pids} episodes hold a process id that the original used again (Q17): "
            "phalanx does not model it, and may differ there in whether Remove stops that shell. "
            "Its chance is k/32,767 for each new shell, k being the ids that blue suspects there"
        )
    print(f"recorded, but not compared: {', '.join(result.not_compared)}; --json says why")
    return 1 if result.mismatches else 0
