"""Red's actions under the original's names, for agents that are tried where it is not installed.

    from phalanx.cage2.attack.original_actions import DiscoverRemoteSystems, ExploitRemoteService, …

They only name what is to be done. The original's own objects do as well.
"""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network


@dataclass
class Sleep:
    pass


@dataclass(kw_only=True)
class _OfRed:
    session: int = 0
    agent: str = "Red"


@dataclass(kw_only=True)
class DiscoverRemoteSystems(_OfRed):
    subnet: IPv4Network


@dataclass(kw_only=True)
class DiscoverNetworkServices(_OfRed):
    ip_address: IPv4Address


@dataclass(kw_only=True)
class ExploitRemoteService(_OfRed):
    ip_address: IPv4Address
    priority: type | None = None


@dataclass(kw_only=True)
class PrivilegeEscalate(_OfRed):
    hostname: str


@dataclass(kw_only=True)
class Impact(_OfRed):
    hostname: str


@dataclass(kw_only=True)
class _Single(_OfRed):
    ip_address: IPv4Address
    target_session: int = 0


class EternalBlue(_Single):
    pass


class BlueKeep(_Single):
    pass


class HTTPRFI(_Single):
    pass


class HTTPSRFI(_Single):
    pass


class SSHBruteForce(_Single):
    pass


class SQLInjection(_Single):
    pass


class HarakaRCE(_Single):
    pass


class FTPDirectoryTraversal(_Single):
    pass
