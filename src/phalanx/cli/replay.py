"""The command `phalanx replay`: writes an episode as a page, and says where it went wrong."""

import sys

from phalanx.play.players import check_there, open_players, remarks
from phalanx.show.replay.config import ReplayConfig
from phalanx.show.replay.replay import play_and_record


def main(config: ReplayConfig) -> int:
    """The command: progress on a terminal, the page, JSON if asked for, and one sentence."""
    players = [] if config.trace is not None else open_players(config.played)
    if players:
        check_there(players, config.played.scenario)
    for line in remarks(players, config.played.rules, config.played.scenario) if players else ():
        print(f"phalanx: {line}", file=sys.stderr)
    told = play_and_record(config, players, progress=True)
    told.save(config.out)
    written = str(config.out)
    if config.json is not None:
        told.save_json(config.json)
        written = f"{written} and {config.json}"
    if told.picked:
        print(told.picked)
    first, *others = str(told).splitlines()
    print(f"{written}: {first}")
    for other in others:
        print(f"beside it: {other}")
    for note in told.notes:
        print(f"phalanx: {note}", file=sys.stderr)
    return 0
