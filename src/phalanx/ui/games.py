"""The games that are being played: a few at a time, each by one move after the other."""

import secrets
from collections import OrderedDict
from threading import Lock

from phalanx.cage2.rules.scenario import DEFAULT_RULES
from phalanx.ui.advice import Adviser
from phalanx.ui.asked import NotHere, TooLate
from phalanx.ui.beside import beside, published
from phalanx.ui.jobs import Jobs
from phalanx.ui.live_game import GameSettings, LiveGame
from phalanx.ui.looked_back import looked_back

MOST_GAMES = 8


class Table:
    """A game, who advises in it, and a lock: two windows may show the same game."""

    def __init__(self, settings: GameSettings) -> None:
        self.id = secrets.token_urlsafe(8)
        self.lock = Lock()
        self.game = LiveGame(settings)
        self._adviser: Adviser | None = None

    @property
    def adviser(self) -> Adviser:
        """Made when it is first asked for; it takes in what has happened since."""
        if self._adviser is None:
            self._adviser = Adviser(self.game)
        return self._adviser

    def facts(self) -> dict[str, object]:
        return {"id": self.id, **self.game.facts(), "trajectory": self.game.trajectory()}

    def close(self) -> None:
        """End the game, unless somebody computes in it: that ends by itself."""
        if not self.lock.acquire(blocking=False):
            return
        try:
            if self._adviser is not None:
                self._adviser.close()
                self._adviser = None
            self.game.close()
        finally:
            self.lock.release()


class Games:
    """What can be asked of games. Of too many, the one that nobody has touched for longest ends."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._tables: OrderedDict[str, Table] = OrderedDict()
        self._lock = Lock()

    def begin(
        self,
        red_agent: str = "meander",
        horizon: int = 30,
        rules: str = DEFAULT_RULES,
        seed: int | None = None,
    ) -> dict[str, object]:
        """A new game; without a seed, one that nobody has played."""
        drawn = secrets.randbelow(10**6) if seed is None else seed
        settings = GameSettings(red_agent=red_agent, horizon=horizon, rules=rules, seed=drawn)
        table, dropped = Table(settings), list[Table]()
        with self._lock:
            self._tables[table.id] = table
            while len(self._tables) > MOST_GAMES:
                dropped.append(self._tables.popitem(last=False)[1])
        for old in dropped:
            old.close()
        return table.facts()

    def state(self, id: str) -> dict[str, object]:
        table = self.table(id)
        with table.lock:
            return table.facts()

    def play(self, id: str, turn: int, action: int) -> dict[str, object]:
        """Play turn number `turn`: who clicks twice has moved once."""
        table = self.table(id)
        with table.lock:
            if table.game.is_over or turn != table.game.turn + 1:
                raise TooLate(f"turn {turn} is not the next one: {table.game.turn} were played")
            table.game.play(action)
            return table.facts()

    def open_cards(self, id: str) -> dict[str, object]:
        table = self.table(id)
        with table.lock:
            table.game.open_cards()
            return table.facts()

    def hint(self, id: str, turn: int) -> dict[str, object]:
        """What the champion would do after so many turns; `stale` if the game has gone on."""
        table = self.table(id)
        with table.lock:
            if table.game.is_over or turn != table.game.turn:
                return {"turn": turn, "stale": True}
            adviser = table.adviser
            return {
                "turn": turn,
                "champion": adviser.name,
                "likely": adviser.likely(),
                "is_exact": adviser.is_exact,
            }

    def what_if(self, id: str, turn: int, actions: list[int]) -> dict[str, object]:
        """What it thinks these actions would bring; asked again, it is surer."""
        table = self.table(id)
        with table.lock:
            if table.game.is_over or turn != table.game.turn:
                return {"turn": turn, "stale": True}
            return {"turn": turn, **table.adviser.ask(actions)}

    def beside(self, id: str) -> dict[str, object]:
        """A score beside others: those that are published at once, the champion's as a job."""
        game = self.table(id).game
        if not game.is_over:
            raise TooLate("the game is not over yet")
        job = self._jobs.begin("the champion's games", lambda tell: beside(game, tell))
        return {"published": published(game), "job": job.facts()}

    def look_back(self, id: str) -> dict[str, object]:
        """What the champion makes of a game that is over, as a job that gives a trajectory."""
        game = self.table(id).game
        if not game.is_over:
            raise TooLate("the game is not over yet")
        return self._jobs.begin("a look back", lambda tell: looked_back(game, tell)).facts()

    def table(self, id: str) -> Table:
        with self._lock:
            if id not in self._tables:
                raise NotHere("this game is not there any more; begin another")
            self._tables.move_to_end(id)
            return self._tables[id]

    def close(self) -> None:
        for table in self._tables.values():
            table.close()
