"""The command `phalanx export`."""

from phalanx.play.export import ExportConfig, export


def main(config: ExportConfig) -> int:
    export(config.run, config.file, config.prior)
    print(f"{config.file}: {config.file.stat().st_size / 1000:.0f} kB")
    return 0
