"""The command `phalanx evaluate`: a table of returns."""

import sys

from phalanx.files import write_json
from phalanx.play.cells import Cell, play_cells
from phalanx.play.evaluate_config import EvaluateConfig
from phalanx.play.players import check_there, open_players, remarks
from phalanx.play.scores import Scores


def main(config: EvaluateConfig) -> int:
    """The command: progress on a terminal, a table, and JSON if asked for.

    Ctrl-C keeps what is done.
    """
    players = [] if config.elsewhere else open_players(config)
    check_there(players, config.scenario)
    for line in remarks(players, config.rules, config.scenario):
        print(f"phalanx: {line}", file=sys.stderr)
    cells: list[Cell] = []
    complete = False
    try:
        for cell in play_cells(config, players, progress=True):
            cells.append(cell)
        complete = True
    except KeyboardInterrupt:
        pass
    scores = Scores(config, tuple(cells), complete)
    if config.json is not None and cells:
        write_json(config.json, scores.as_dict())
    if cells:
        print(scores)
    if not complete:
        print(f"phalanx: interrupted after {len(cells)} cells of the table", file=sys.stderr)
    return 0 if complete else 130
