"""What `random:seed=1,users=3-8,enterprise=3-5,op=2-4` asks for."""

from typing import NamedTuple

from phalanx.cage2.rules.scenario import MAX_HOSTS
from phalanx.cage2.scenario.names import RANDOM
from phalanx.errors import ConfigError, choices

EXAMPLE = "random:seed=1,users=3-8,enterprise=3-5,op=2-4"
Range = tuple[int, int]

# Each key with the range that it may be in, and what it is if nothing is said.
NUMBERS: dict[str, tuple[Range, int]] = {
    "seed": ((0, 2**63 - 1), 0),
    "networks": ((1, 10_000), 256),
}
RANGES: dict[str, tuple[Range, Range]] = {
    "users": ((2, 48), (3, 8)),
    "enterprise": ((2, 16), (3, 5)),
    "op": ((1, 16), (2, 4)),
}
ONE = "network"
KEYS = (*NUMBERS, *RANGES, ONE)


class Spec(NamedTuple):
    """How many networks, and what can come up in them."""

    seed: int
    networks: int
    users: Range
    """user hosts, red's first one among them"""
    enterprise: Range
    """hosts called Enterprise, besides Defender"""
    op: Range
    """operational hosts, Op_Server0 among them"""
    network: int | None
    """one of the networks, alone; None: all of them"""

    @property
    def room(self) -> int:
        """Hosts of the largest network that can come up."""
        return 1 + self.users[1] + self.enterprise[1] + self.op[1]


def parse_random(text: str) -> Spec:
    """`random:` and keys; what is wrong is said in one line."""
    given: dict[str, str] = {}
    for part in filter(None, text.removeprefix(RANDOM).split(",")):
        key, equals, value = (word.strip() for word in part.partition("="))
        if key not in KEYS:
            raise ConfigError(f"{text}: {choices('key', key, KEYS)}")
        if not equals or key in given:
            raise ConfigError(f"{text}: give {key} once, with a value, as in {EXAMPLE}")
        given[key] = value
    numbers = {
        key: _whole(text, key, given[key], within) if key in given else unsaid
        for key, (within, unsaid) in NUMBERS.items()
    }
    ranges = {
        key: _range(text, key, given[key], within) if key in given else unsaid
        for key, (within, unsaid) in RANGES.items()
    }
    one = (
        _whole(text, ONE, given[ONE], (0, NUMBERS["networks"][0][1] - 1)) if ONE in given else None
    )
    spec = Spec(numbers["seed"], numbers["networks"], **ranges, network=one)
    if spec.room > MAX_HOSTS:
        raise ConfigError(
            f"{text}: networks of up to {spec.room} hosts (Defender is one more); {MAX_HOSTS} can "
            "be played"
        )
    return spec


def _whole(text: str, key: str, value: str, within: Range) -> int:
    low, high = within
    if not (value.isascii() and value.isdecimal() and len(value) < 20) or not (
        low <= int(value) <= high
    ):
        raise ConfigError(
            f"{text}: {key} must be a whole number from {low} to {high}, got {value:.20}"
        )
    return int(value)


def _range(text: str, key: str, value: str, within: Range) -> Range:
    """`4` or `3-8`."""
    first, dash, last = value.partition("-")
    low = _whole(text, key, first, within)
    high = _whole(text, key, last, within) if dash else low
    if low > high:
        raise ConfigError(f"{text}: {key} must go from less to more, got {value:.20}")
    return low, high
