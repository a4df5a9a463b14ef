"""Images: what runs on a host. The challenge's own by name, and others from files in its format."""

from phalanx.cage2.rules.scenario import (
    AS_ROOT,
    AS_USER,
    BLUE_KEEP,
    ETERNAL_BLUE,
    EXPLOIT_PORTS,
    FAILS,
    FTP,
    GATE,
    HARAKA,
    HTTP_RFI,
    HTTPS_RFI,
    INT,
    L1,
    L2,
    OPS,
    SPOILED,
    SQL,
    SSH,
    VEL,
    W1,
    W2,
    Image,
)
from phalanx.cage2.scenario.keys import Keys, refuse

IMAGES = {
    "Gateway": GATE,
    "Internal": INT,
    "OP_Server": OPS,
    "Velociraptor_Server": VEL,
    "windows_user_host1": W1,
    "windows_user_host2": W2,
    "linux_user_host1": L1,
    "linux_user_host2": L2,
    "Kali_Box": Image("Linux", (22, 55553, 68), {SSH: FAILS}),
    "linux_decoy_host": GATE,
}  # as the original calls them; the last two are not in the challenge

SERVICE = "OTService"
ROOTS = {"Linux": "root", "Windows": "SYSTEM"}
WEB = ("webserver", "http", "https")
TYPES: dict[int, tuple[str, ...]] = {
    ETERNAL_BLUE: ("smb",), BLUE_KEEP: ("rdp",), HTTP_RFI: WEB, HTTPS_RFI: WEB,
    SSH: ("ssh", "sshd", "sshd.exe"), SQL: ("mysql",), HARAKA: ("smtp",), FTP: ("femitter",),
}  # fmt: skip
"""what a process must be for an exploit to try it"""
VULNERABLE_VERSIONS = (
    "openssh 1.3",
    "10.0.17763.1",
    "samba 3.0.20-debian",
    "smbv1",
    "apache tomcat",
    "python simplehttpserver",
    "haraka 2.7.0",
)
"""versions that the original takes for older than Haraka 2.8.9"""


def read_image(keys: Keys) -> Image:
    """An image file of the original: its `Test_Host`."""
    system = keys.part("System info")
    os = system.choice("OSType", {"LINUX": "Linux", "WINDOWS": "Windows"})
    patches = [str(patch).lower() for patch in system.items("Patches", ())]
    processes = [_Process(process) for process in keys.parts("Processes")]
    users = [user.get("Username") for user in keys.parts("User Info") if user.get("Bruteforceable")]
    services = keys.get("Services", {}) or {}
    listening = [port for process in processes for port in process.ports]
    ports = tuple(dict.fromkeys(listening))
    again = tuple(port for k, port in enumerate(listening) if port in listening[:k])
    yields = {}
    for exploit, port in enumerate(EXPLOIT_PORTS):
        found = (p for p in processes if p.kind in TYPES[exploit] and port in p.ports)
        process = next(found, None)
        if process is not None:
            yields[exploit] = _outcome(exploit, process, os, patches, users)
    return Image(os, ports, yields, SERVICE in services, again)


class _Process:
    """One process of an image."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        self.ports = [part.whole("local_port") for part in keys.parts("Connections", ())]
        self.kind = str(keys.get("Process Type", keys.get("Process Name", ""))).lower()
        self.kind = "webserver" if self.kind.replace(" ", "") == "webserver" else self.kind
        self.user = keys.get("Username")
        self.properties = keys.get("Properties") or ()
        self.version = keys.get("Process Version")


def _outcome(
    exploit: int, process: _Process, os: str, patches: list[str], users: list[object]
) -> int:
    """What the exploit gives where this process answers it."""
    user = process.user
    if exploit == SSH:
        if not users:
            return FAILS
        user = users[0]
    elif exploit == ETERNAL_BLUE:
        if os != "Windows" or "ms17-010" in patches:
            return SPOILED
    elif exploit in (HTTP_RFI, HTTPS_RFI):
        if "rfi" not in process.properties:
            return SPOILED
    elif exploit == HARAKA:
        if process.version is None:
            refuse(process.keys, "Process Version", "an smtp process must have one")
        if str(process.version).lower() not in VULNERABLE_VERSIONS:
            return SPOILED
    if user in ROOTS.values() and user != ROOTS[os]:
        refuse(process.keys, "Username", f"{user} is no account of {os} that counts as privileged")
    return AS_ROOT if user == ROOTS[os] else AS_USER
