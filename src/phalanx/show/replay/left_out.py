"""What a replay leaves out, and why: a sentence each, for the page and the terminal."""

from phalanx.cage2.attack.python_red import PythonAttacker
from phalanx.cage2.batch import Batch
from phalanx.cage2.scenario.attackers import prior_there
from phalanx.cage2.scenario.plan import Scenario
from phalanx.cage2.scenario.read import CAGE2
from phalanx.errors import ConfigError
from phalanx.play.players import Player


def prior_told(scenario: Scenario, prior: str, own: str = "") -> tuple[str | None, list[str]]:
    """Whom the belief that is shown expects, or None; and why it is left out, if it is.

    own: names of attackers of the user's own that may play.
    """
    if scenario == CAGE2:
        return prior, []
    if own:
        return None, [
            f"The belief is left out: it expects phalanx's attackers, and {own} is your own."
        ]
    if not can_expect(prior, scenario):
        return None, [
            f"The belief is left out: none of the attackers that it expects can play on "
            f"{scenario.name}."
        ]
    return prior, []


def can_expect(prior: str, scenario: Scenario) -> bool:
    """Whether attackers of a prior can play on a network."""
    try:
        return bool(prior_there(prior, [scenario]))
    except ConfigError:
        return False


def why_no_what_if(player: Player, batch: Batch, row: int) -> list[str]:
    """Why games cannot be played on from this episode with a trained policy, if they cannot."""
    if player.policy is None:
        return []
    own = own_attackers(batch)
    if own:
        return [
            f"What if is left out: games cannot be played on against {own}, an attacker of your "
            "own."
        ]
    if player.policy.policy is None and batch.scenario_of(row) != CAGE2:
        return [
            "What if is left out: games are played on with phalanx's own networks, and "
            f"{player.name} has one of torch."
        ]
    return []


def about_attackers(batch: Batch) -> list[str]:
    """What is to be known of attackers of the user's own."""
    named = [] if batch.own_red is None else batch.own_red.attackers
    return [
        f"{one.name} is a class, whose memory and dice are its own: it may play another game when "
        "it is asked again."
        for one in named
        if isinstance(one, PythonAttacker)
    ]


def own_attackers(batch: Batch) -> str:
    """The names of attackers of the user's own, if any may play."""
    return "" if batch.own_red is None else ", ".join(one.name for one in batch.own_red.attackers)
