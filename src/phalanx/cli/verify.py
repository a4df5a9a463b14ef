"""The command `phalanx verify`: how many steps were replayed, and where the first one differs."""

from dataclasses import asdict, dataclass, field
from pathlib import Path

from phalanx.cage2.settings import rule_set_number
from phalanx.files import check_writable, write_json
from phalanx.settings.fields import checked


@checked
@dataclass(frozen=True, kw_only=True)
class VerifyConfig:
    """Replay recorded games of the original; a difference is named, and gives exit code 1."""

    folder: Path | None = field(default=None, metadata={"positional": True})
    """folder with codebook.json and .npz traces; the games that come with phalanx if not given"""
    rules: str | None = None
    """the rule set the traces must be of; taken from codebook.json if not given"""
    red_agent: str | None = None
    """the recorded attacker of your own, written for phalanx: my_file.py:my_red; without it the
    recorded moves are played"""
    json: Path | None = None
    """also write the result to this file"""

    def __post_init__(self) -> None:
        if self.rules is not None:
            rule_set_number(self.rules)
        check_writable(self.json)


def main(config: VerifyConfig) -> int:
    """Print episodes, steps, mismatches and the first of them; exit code 1 if there is one."""
    from phalanx.verify.replay import GAMES, verify  # compiled, which its help is not to wait for

    result = verify(config.folder or GAMES / (config.rules or ""), config.rules, config.red_agent)
    if config.json is not None:
        write_json(config.json, asdict(result))
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
