"""Tables of what the files of a run hold."""

from phalanx.training.columns import EXPLAINED


def columns_table(name: str) -> str:
    """The columns of a table, or the keys of the summary, each with its sentence."""
    head = ["| key | what it is |" if name == "summary" else "| column | what it is |", "|--|--|"]
    return "\n".join(head + [f"| `{one}` | {text} |" for one, text in EXPLAINED[name].items()])
