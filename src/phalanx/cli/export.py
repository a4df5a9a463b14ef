"""The command `phalanx export`."""

from phalanx.play.export import export
from phalanx.play.export_config import ExportConfig


def main(config: ExportConfig) -> int:
    export(config.run, config.file)
    print(f"{config.file}: {config.file.stat().st_size / 1000:.0f} kB")
    return 0
