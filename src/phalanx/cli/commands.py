"""The command `phalanx`: one table of commands, and errors as one line with exit code 2."""

import contextlib
import inspect
import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from dataclasses import fields
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

import phalanx
from phalanx.compiled.aside import is_at_work
from phalanx.errors import ConfigError, PhalanxError, choices

LONGEST_LINE = 1000  # characters


class Command(NamedTuple):
    """What `main` of phalanx.cli.NAME does."""

    about: str
    settings: str
    """where the class of its settings is; imported when the command is asked for"""
    example: str

    @property
    def config(self) -> type:
        module, _, name = self.settings.partition(":")
        return getattr(import_module(f"phalanx.{module}"), name)


COMMANDS = {
    "train": Command(
        "Train a policy, on CAGE-2 or any Gymnasium environment.",
        "training.config:TrainConfig",
        "phalanx train --red-agent meander --n-envs 512",
    ),
    "evaluate": Command(
        "Play many episodes with defenders of any kind; print the returns.",
        "play.evaluate_config:EvaluateConfig",
        "phalanx evaluate champion react-restore --leaderboard",
    ),
    "explain": Command(
        "Show what a defender does, turn by turn and host by host, and where its loss comes from.",
        "play.explain_config:ExplainConfig",
        "phalanx explain runs/first --red-agent b_line --plot first.png",
    ),
    "replay": Command(
        "Write an episode as one HTML file that shows it turn by turn, and where it went wrong.",
        "show.replay.config:ReplayConfig",
        "phalanx replay champion --red-agent meander --pick worst --out episode.html",
    ),
    "ui": Command(
        "Look at runs, replay episodes and play the defender yourself, in a browser.",
        "ui.config:UiConfig",
        "phalanx ui runs",
    ),
    "bound": Command(
        "Compute what no defender can beat: an upper bound on the mean return.",
        "bound.config:BoundConfig",
        "phalanx bound --red-agent b_line --horizon 30 50 100",
    ),
    "search": Command(
        "In which order to repair? Say which orders may be best, and what each other one costs.",
        "search.config:SearchConfig",
        "phalanx search --red-agent b_line,meander --ask critical_first",
    ),
    "sweep": Command(
        "Train once with every combination of some settings' values; print which was best.",
        "cluster.sweep_config:SweepConfig",
        "phalanx sweep quick --over learning_rate=1e-3,3e-4 hidden=64x64,128x128",
    ),
    "runs": Command(
        "List runs, searches and sweeps: how far each is, and what it brought; best first.",
        "cli.runs:RunsConfig",
        "phalanx runs --sort score",
    ),
    "compare": Command(
        "Which run is better, by how much, and how sure that is.",
        "show.compare.config:CompareConfig",
        "phalanx compare runs/first runs/second --out compare.html",
    ),
    "report": Command(
        "Write runs as one HTML page: curves with intervals, speed, scores, episodes, settings.",
        "show.report.config:ReportConfig",
        "phalanx report runs/first --out report.html",
    ),
    "export": Command(
        "Write the policy of a run as one file that `phalanx evaluate` and Python can play.",
        "play.export:ExportConfig",
        "phalanx export runs/first agent.npz",
    ),
    "verify": Command(
        "Replay recorded games of the original; a difference is named, and gives exit code 1.",
        "cli.verify:VerifyConfig",
        "phalanx verify --json equal.json",
    ),
    "scenario": Command(
        "Show what a scenario file says, and what cannot happen in it.",
        "cli.scenario:ScenarioConfig",
        "phalanx scenario my_network.yaml --actions",
    ),
    "record": Command(
        "Play the original, where it is installed, and write what happened for phalanx to replay.",
        "cli.record:RecordConfig",
        "phalanx record --scenario my_network.yaml --red-agent meander --out recorded",
    ),
    "profile": Command(
        "Show where the time of a training goes, in each thread and process, and what to try.",
        "show.profile.config:ProfileConfig",
        "phalanx profile --env CartPole-v1 --num-workers 2 --trace-file trace.json",
    ),
    "bench": Command(
        "Measure the speed of simulator, training and runners, and of others beside them.",
        "bench.config:BenchConfig",
        "phalanx bench sim --num-envs 4096",
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except PhalanxError as error:
        code, why = 2, str(error)
    except KeyboardInterrupt:
        code, why = 130, "interrupted"
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except MemoryError as error:
        code, why = 2, f"not enough memory ({error}); ask for less at a time"
    except (OSError, UnicodeEncodeError) as error:
        code, why = 1, f"reading or writing failed: {error}"
    print(f"phalanx: {in_one_line(why)}", file=sys.stderr)
    return code


def in_one_line(why: str) -> str:
    """What an error says, whatever a file or a name has put into it: one line, and not too long."""
    line = " ".join(why.split())
    line = "".join(char if char.isprintable() else "?" for char in line)
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} ..."


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0].startswith("-"):
        return _overview(arguments)
    name, *given = arguments
    if name not in COMMANDS:
        raise ConfigError(choices("command", name, COMMANDS))
    from phalanx.settings.flags import add_flags, from_flags  # and YAML, not for an overview

    config, example = COMMANDS[name].config, COMMANDS[name].example
    parser = _Parser(
        prog=f"phalanx {name}",
        description=inspect.cleandoc(str(config.__doc__)),
        epilog=f"example: {example}",
    )
    add_flags(parser, config, everything="--help-all" in given)
    parsed, unknown = parser.parse_known_args(given)
    if unknown:
        raise ConfigError(_unknown(unknown[0], name))
    return int(import_module(f"phalanx.cli.{name}").main(from_flags(config, vars(parsed))))


def _overview(arguments: list[str]) -> int:
    """`phalanx`, `phalanx --help` and `phalanx --version`: at once, without what commands need."""
    examples = "".join(f"\n  {command.example}" for command in COMMANDS.values())
    parser = _Parser(prog="phalanx", description=phalanx.__doc__, epilog=f"examples:{examples}")
    parser.add_argument("--version", action="version", version=f"phalanx {phalanx.__version__}")
    listed = parser.add_subparsers(metavar="COMMAND", title="commands")
    for name, command in COMMANDS.items():
        listed.add_parser(name, help=command.about)
    _command, unknown = parser.parse_known_args(arguments)
    if unknown:
        raise ConfigError(f"unknown option {unknown[0]}; see phalanx --help")
    parser.print_help()
    return 0


def _unknown(option: str, command: str) -> str:
    """The line for an option that a command does not have, with the one that may have been meant"""
    from phalanx.settings.flags import flags_of

    kind = "option" if option.startswith("-") else "argument"
    flag = option.split("=")[0]
    known = {
        name: [flag for item in fields(one.config) for flag in flags_of(item)]
        for name, one in COMMANDS.items()
    }
    near = get_close_matches(flag, ["--help", *known[command]], n=1, cutoff=0.8)
    others = [name for name, flags in known.items() if flag in flags]
    if near:
        hint = f"did you mean {near[0]}?"
    elif others:
        hint = f"it is one of phalanx {others[0]}"
    else:
        hint = f"see phalanx {command} --help"
    return f"unknown {kind} {option:.80} for phalanx {command}; {hint}"


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
