"""The command `phalanx`: one table of commands, and errors as one line with exit code 2."""

import contextlib
import inspect
import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

import phalanx
from phalanx.bench.config import BenchConfig
from phalanx.cluster.sweep_config import SweepConfig
from phalanx.compiled.aside import is_at_work
from phalanx.errors import ConfigError, PhalanxError, choices
from phalanx.play.evaluate_config import EvaluateConfig
from phalanx.play.explain_config import ExplainConfig
from phalanx.play.export_config import ExportConfig
from phalanx.search.config import SearchConfig
from phalanx.settings.flags import add_flags, from_flags
from phalanx.training.config import TrainConfig
from phalanx.verify.config import VerifyConfig

LONGEST_LINE = 1000  # characters


class Command(NamedTuple):
    """Its settings and an example; `main` of phalanx.cli.NAME runs it."""

    config: type
    example: str


COMMANDS = {
    "train": Command(TrainConfig, "phalanx train --red-agent meander --n-envs 512"),
    "evaluate": Command(EvaluateConfig, "phalanx evaluate champion react-restore --leaderboard"),
    "explain": Command(
        ExplainConfig, "phalanx explain runs/first --red-agent b_line --plot first.png"
    ),
    "search": Command(
        SearchConfig, "phalanx search --red-agent b_line --total-episodes 100000 --n-envs 200"
    ),
    "sweep": Command(
        SweepConfig, "phalanx sweep quick --over learning_rate=1e-3,3e-4 hidden=64x64,128x128"
    ),
    "export": Command(ExportConfig, "phalanx export runs/first agent.npz"),
    "verify": Command(VerifyConfig, "phalanx verify --json equal.json"),
    "bench": Command(BenchConfig, "phalanx bench sim --num-envs 4096"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except PhalanxError as error:
        print(f"phalanx: {in_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("phalanx: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except MemoryError as error:
        print(f"phalanx: not enough memory ({error}); ask for less at a time", file=sys.stderr)
        return 2
    except (OSError, UnicodeEncodeError) as error:
        print(f"phalanx: reading or writing failed: {in_one_line(error)}", file=sys.stderr)
        return 1


def in_one_line(error: BaseException) -> str:
    """What an error says, whatever a file or a name has put into it: one line, and not too long."""
    line = " ".join(str(error).split())
    line = "".join(char if char.isprintable() else "?" for char in line)
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} ..."


def _run(arguments: list[str]) -> int:
    parser = _Parser(prog="phalanx", description=phalanx.__doc__, epilog=_overview())
    parser.add_argument("--version", action="version", version=f"phalanx {phalanx.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, command in COMMANDS.items():
        about = inspect.cleandoc(str(command.config.__doc__))
        sub = commands.add_parser(
            name,
            help=about.splitlines()[0],
            description=about,
            epilog=f"example: {command.example}",
        )
        add_flags(sub, command.config)

    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        raise ConfigError(choices("command", arguments[0], COMMANDS))
    parsed, unknown = parser.parse_known_args(arguments)
    if parsed.command is None:
        if unknown:
            raise ConfigError(f"unknown option {unknown[0]}; see phalanx --help")
        parser.print_help()
        return 0
    command = COMMANDS[parsed.command]
    if unknown:
        raise ConfigError(_unknown(unknown[0], parsed.command, commands.choices))
    values = {name: value for name, value in vars(parsed).items() if name != "command"}
    config = from_flags(command.config, values)
    return int(import_module(f"phalanx.cli.{parsed.command}").main(config))


def _unknown(option: str, command: str, parsers: Mapping[str, ArgumentParser]) -> str:
    """The line for an option that a command does not have, with the one that may have been meant"""
    kind = "option" if option.startswith("-") else "argument"
    flag = option.split("=")[0]
    known = {
        name: [flag for action in parser._actions for flag in action.option_strings]
        for name, parser in parsers.items()
    }
    near = get_close_matches(flag, known[command], n=1, cutoff=0.8)
    others = [name for name, flags in known.items() if flag in flags]
    if near:
        hint = f"did you mean {near[0]}?"
    elif others:
        hint = f"it is one of phalanx {others[0]}"
    else:
        hint = f"see phalanx {command} --help"
    return f"unknown {kind} {option:.80} for phalanx {command}; {hint}"


def _overview() -> str:
    return "examples:\n" + "\n".join(f"  {command.example}" for command in COMMANDS.values())


class _Parser(ArgumentParser):
    """argparse, with whole option names only and errors as one line."""

    def __init__(self, **options: Any) -> None:
        options["formatter_class"] = RawDescriptionHelpFormatter
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message} (see {self.prog} --help)")


def leave(code: int) -> NoReturn:
    """End the process; who interrupts a compiler does not wait for it."""
    if is_at_work():
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    leave(main())
