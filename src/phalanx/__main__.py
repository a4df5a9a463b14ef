"""`phalanx`, and `python -m phalanx`: Ctrl-C while Python is still importing is no accident."""

import sys


def main() -> int:
    try:
        from phalanx.cli.commands import leave
        from phalanx.cli.commands import main as run

        leave(run())
    except KeyboardInterrupt:
        print("phalanx: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
