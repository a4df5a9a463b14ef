"""Settings of `phalanx verify`."""

from dataclasses import dataclass, field
from pathlib import Path

from phalanx.cage2.settings import rule_set_number
from phalanx.files import check_writable
from phalanx.settings.fields import checked


@checked
@dataclass(frozen=True, kw_only=True)
class VerifyConfig:
    """Replay recorded games of the original; a difference is named, and gives exit code 1."""

    folder: Path | None = field(default=None, metadata={"positional": True})
    """folder with codebook.json and .npz traces; the games that come with phalanx if not given"""
    rules: str | None = None
    """the rule set the traces must be of; taken from codebook.json if not given"""
    json: Path | None = None
    """also write the result to this file"""

    def __post_init__(self) -> None:
        if self.rules is not None:
            rule_set_number(self.rules)
        check_writable(self.json)
