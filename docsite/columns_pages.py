"""Tables of what the files of a run or a search hold."""

from phalanx.search.measured import Row
from phalanx.search.surrogate import Visit
from phalanx.settings.flags import helps_of
from phalanx.training.columns import EXPLAINED

ROWS = {"search": Visit, "measured": Row}


def columns_table(name: str) -> str:
    """The columns of a table, or the keys of the summary, each with its sentence."""
    if name in ROWS:
        explained = {column: help.text for column, help in helps_of(ROWS[name]).items()}
    else:
        explained = EXPLAINED[name]
    head = ["| key | what it is |" if name == "summary" else "| column | what it is |", "|--|--|"]
    return "\n".join(head + [f"| `{one}` | {text} |" for one, text in explained.items()])
