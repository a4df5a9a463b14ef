"""The part of a report that shows a policy's best and worst episodes, turn by turn."""

from phalanx.cage2.registration import CAGE2_ENVS
from phalanx.cage2.settings import is_own, red_agent_weights
from phalanx.errors import PhalanxError
from phalanx.show.drawing.markup import Body, minus
from phalanx.show.drawing.page import text
from phalanx.show.report.scores import SEED
from phalanx.show.runs.runs import RunRow, settings_of, whole
from phalanx.training.checkpoint import last_checkpoint

PICKS = {"worst": "Worst", "best": "Best"}
MOST_ATTACKERS = 2
MOST_TURNS = 100
ELEMENT = "replays"  # of the page's data


def tell_replays(body: Body, row: RunRow, of: int) -> None:
    """The worst and the best of so many episodes against the attackers it was trained against most.

    Nothing for other games than CAGE-2, for a run without a checkpoint, or one that is at work.
    """
    playable = row.env in CAGE2_ENVS and last_checkpoint(row.path).is_file()
    if of < 2 or not playable or row.state == "running":
        return
    from phalanx.show.replay.replay import replay  # compiles, where nothing has yet

    body.heading("Episodes")
    turns = min(whole(settings_of(row.path)[0].get("horizon")) or MOST_TURNS, MOST_TURNS)
    for attacker in attackers_of(row):
        for pick, word in PICKS.items():
            try:
                episode = replay(
                    str(row.path),
                    red_agent=attacker,
                    horizon=turns,
                    seed=SEED,
                    pick=pick,
                    of=of,
                    what_if=False,
                    progress=False,
                )
            except PhalanxError as error:
                body.say(f"No episode can be shown: {error}.", kind="amiss")
                return
            (play,) = episode.trajectory["plays"]
            play["policy"] = row.name  # not where it lies on this machine
            returned = minus(f"{play['return']:.1f}")
            words = f"{word} of {of:,} against {attacker}: return {returned}"
            number = len(body.data.setdefault(ELEMENT, []))
            body.data[ELEMENT].append(episode.trajectory)
            body.add(
                f'<details class="episode" data-replay="{number}"><summary>{text(words)}</summary>'
                '<div class="shown"></div></details>'
            )


def attackers_of(row: RunRow) -> list[str]:
    """Those that most episodes of training were against, but for the one that does nothing."""
    try:
        weights = red_agent_weights(row.red_agent or "b_line=0.5,meander=0.5")
    except PhalanxError:
        return ["meander"]
    weights = {name: share for name, share in weights.items() if not is_own(name)}
    often = sorted(weights, key=lambda name: -weights[name])
    return [name for name in often if name != "sleep"][:MOST_ATTACKERS] or ["meander"]
