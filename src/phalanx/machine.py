"""What a figure depends on: the machine, the versions, the memory used."""

import os
import platform
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import phalanx
from phalanx.system import LINUX
from phalanx.system import peak_memory_mb as own_peak_memory_mb

PACKAGES = ("numpy", "numba", "gymnasium", "torch")


def describe_versions() -> dict[str, str]:
    """phalanx, Python and what it computes with, as far as installed."""
    found = {"phalanx": phalanx.__version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    commit = find_commit(Path(phalanx.__file__).parents[2])  # of src/phalanx; not where installed
    return found if commit is None else {**found, "commit": commit}


def describe_machine() -> dict[str, str]:
    return {**describe_versions(), **describe_hardware()}


def describe_hardware() -> dict[str, str]:
    return {
        "cores": str(os.cpu_count()),
        "processor": _processor(),
        "system": platform.system(),
    }


def find_commit(checkout: Path) -> str | None:
    """The commit that a checkout of git is at, ten letters of it; None if it is none.

    It is read from git's files, since git itself may be missing: HEAD names a commit, or a branch
    that has one in a file of its own or among the packed ones. What was changed since is not seen.
    """
    git = checkout / ".git"
    try:
        if git.is_file():  # a second work tree says where its own part is
            git = checkout / git.read_text().removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text().strip()
        shared = git / "commondir"
        return _commit_at(head, git / shared.read_text().strip() if shared.exists() else git)
    except (OSError, ValueError):
        return None


def _commit_at(head: str, git: Path) -> str | None:
    branch = head.removeprefix("ref:").strip()
    if branch == head:
        return head[:10]
    if (git / branch).exists():
        return (git / branch).read_text().strip()[:10]
    packed = (git / "packed-refs").read_text().splitlines()
    return next((line[:10] for line in packed if line.endswith(f" {branch}")), None)


def count_cores() -> int:
    """Cores that this process may use: by its affinity, and by the quota of its container."""
    if not LINUX:
        return os.cpu_count() or 1
    cores = len(os.sched_getaffinity(0))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(cores, round(int(quota) / int(period))))
    except (OSError, ValueError):  # no such file, or "max": no quota
        return cores


def peak_memory_mb() -> float:
    """The highest memory of this process and of each of its children that is alive, added up.

    Without /proc it is that of this process alone; 0 where nobody knows.
    """
    if not LINUX:
        return own_peak_memory_mb() or 0.0
    return sum(map(_peak_kb, process_tree())) / 1024


def total_memory() -> float:
    """Bytes of memory that this machine has; infinite where it does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return float("inf")


def process_tree() -> set[int]:
    """This process and all that descend from it; it alone where there is no /proc."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int(
                (entry / "stat").read_text().rsplit(")", 1)[1].split()[1]
            )
        except (OSError, IndexError):  # it has just ended
            continue
    tree, before = {os.getpid()}, 0
    while len(tree) > before:
        before = len(tree)
        tree |= {pid for pid, parent in parents.items() if parent in tree}
    return tree


def _peak_kb(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def cpu_of(pids: set[int]) -> float:
    """Seconds that these processes have computed, with all their threads."""
    total = 0.0
    for pid in pids:
        with suppress(OSError):  # it has ended
            total += time.clock_gettime((~pid << 3) | 2)  # its own clock, see clock_gettime(2)
    return total


def busy_s() -> float:
    """Seconds that all cores have computed for anybody; 0 where there is no /proc."""
    try:
        with open("/proc/stat") as file:
            user, nice, system, _idle, _waiting, *interrupts = map(
                int, file.readline().split()[1:9]
            )
    except OSError:
        return 0.0
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(
                line.split(":")[1].strip() for line in lines if line.startswith("model name")
            )
    except (OSError, StopIteration):
        return platform.processor() or "unknown"
