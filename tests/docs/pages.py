"""What the tests of the pages read from them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def page(name: str) -> str:
    return (ROOT / name).read_text()


def section(text: str, title: str) -> str:
    """A section's text: from its heading to the next one of any level."""
    match = re.search(rf"^#+ {re.escape(title)}$\n(.*?)(?=^#+ |\Z)", text, re.DOTALL | re.MULTILINE)
    assert match is not None, f"no section {title!r}"
    return match[1]


def first_cells(text: str) -> list[str]:
    """The first cell of every row of a table, without backticks; headers and rulers left out."""
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("|")]
    return [cell.strip("`") for cell in rows[2:]]


def table(text: str) -> dict[str, list[str]]:
    """First cell (without backticks) -> the other cells of its row."""
    found: dict[str, list[str]] = {}
    for line in [line for line in text.splitlines() if line.startswith("|")][2:]:
        first, *others = (cell.strip() for cell in line.strip().strip("|").split("|"))
        found[first.strip("`")] = others
    return found


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands(text: str) -> list[str]:
    """Every command line of the sh blocks, continuation lines joined."""
    lines = "\n".join(blocks(text, "sh")).replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip()]


def anchor(heading: str) -> str:
    """What a heading is linked by on GitHub."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
