"""Settings that come with phalanx, to be trained with as they are or begun with.

phalanx train --config champion --seed 1
"""

import os
from pathlib import Path

from phalanx.errors import ConfigError, choices

ZOO_FOLDER = Path(__file__).parent / "zoo"
ZOO = dict(sorted((path.stem, path) for path in ZOO_FOLDER.glob("*.yaml")))
NO_CONFIG = "none"  # given as a config: no file at all
CONFIGS = dict(sorted((path.stem, path) for path in Path(__file__).parent.glob("*.yaml")))


def zoo_path(env: object) -> Path | None:
    """The tried settings of a well-known environment, for `--algo ppo`; only those of phalanx."""
    return ZOO.get(env.replace("/", "-")) if isinstance(env, str) else None


def config_path(name: str | Path) -> Path:
    """The file of settings that come with phalanx; any other name must be a file's."""
    path = CONFIGS.get(str(name).lower().replace("_", "-")) or ZOO.get(str(name)) or Path(name)
    if not os.path.exists(path):  # unlike Path.exists, also if no file can have such a name
        raise ConfigError(choices("config or YAML file", str(name)[:80], CONFIGS))
    return path
