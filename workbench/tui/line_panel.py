"""Panels drawn line by line (Textual's Line API): a line is a list of words with roles, a role is a CSS class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from workbench.cell_text import clean, width_of

ROLES = (
    "text",
    "dim",
    "strong",
    "spec",
    "plain",
    "prefill",
    "mixed",
    "idle",
    "good",
    "warn",
    "bad",
    "note",
    "area",
    "area-spec",
    "area-plain",
    "area-prefill",
)

ROLE_CLASSES = {f"role--{role}" for role in ROLES}

Word = tuple[str, str]
"""(text, role); the role ``badge:ROLE`` is that role in reverse."""
Line = Sequence[Word]

ROLE_CSS = """
.role--text { color: $foreground; }
.role--dim { color: $foreground 60%; }
.role--strong { color: $foreground; text-style: bold; }
.role--spec { color: $spec; text-style: bold; }
.role--plain { color: $plain; text-style: bold; }
.role--prefill { color: $prefill; }
.role--mixed { color: $mixed; }
.role--idle { color: $foreground 70%; }
.role--good { color: $spec; }
.role--warn { color: $plain; text-style: bold; }
.role--bad { color: $bad; text-style: bold; }
.role--area-spec { color: $spec 65%; }
.role--area-plain { color: $plain 65%; }
.role--area-prefill { color: $prefill 65%; }
.role--area { color: $note 65%; }
.role--note { color: $note; text-style: italic; }
"""


def mode_role(mode: str) -> str:
    """The role of a step's mode, in either case; the word of a newer engine is plain text."""
    role = mode.lower()
    return role if role in ("spec", "plain", "prefill", "mixed") else "text"


def fit_items(items: Iterable[Line], width: int, gap: int = 2) -> list[Word]:
    """The items that fit, whole, in order, ``gap`` cells between them: one that does not fit is left out, not cut."""
    line: list[Word] = []
    used = 0
    for item in items:
        size = sum(width_of(text) for text, _ in item)
        lead = gap if line else 0
        if used + lead + size > width:
            continue
        if lead:
            line.append((" " * lead, "text"))
        line.extend(item)
        used += lead + size
    return line


def spread(left: Line, right: Line, width: int) -> list[Word]:
    """``left``, then space, then ``right`` at the edge."""
    free = width - sum(width_of(text) for text, _ in (*left, *right))
    return [*left, (" " * max(1, free), "text"), *right]


class RoleStyles(Widget):
    """A widget that draws lines of words by their roles."""

    COMPONENT_CLASSES: ClassVar[set[str]] = ROLE_CLASSES

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._role_styles: dict[str, Style] = {}

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._role_styles.clear()

    def role_style(self, role: str) -> Style:
        """The role's style on this widget; ``badge:ROLE`` is the role in reverse, the empty role is the ground."""
        style = self._role_styles.get(role)
        if style is None:
            if not role:
                style = self.rich_style
            elif role.startswith("badge:"):
                style = self.get_component_rich_style(f"role--{role[6:]}") + Style(reverse=True, bold=True)
            else:
                style = self.get_component_rich_style(f"role--{role}")
            self._role_styles[role] = style
        return style

    def strip(self, line: Line, width: int, extra: Style | None = None) -> Strip:
        """One line, cut or padded to ``width`` cells.

        Neighbours of one role become one segment, and the strip is made once: in a live table this is most of the work.
        """
        runs: list[tuple[str, str]] = []
        size = 0
        for text, role in line:
            text = clean(text)
            size += len(text) if text.isascii() else cell_len(text)
            if runs and runs[-1][1] == role:
                runs[-1] = (runs[-1][0] + text, role)
            else:
                runs.append((text, role))
        segments = [Segment(text, self.role_style(role)) for text, role in runs]
        ground = self.role_style("")
        if size < width:
            segments.append(Segment(" " * (width - size), ground))
        if extra is not None:
            segments = [Segment(text, style + extra if style else extra) for text, style, _ in segments]
        if size <= width:
            return Strip(segments, width)
        return Strip(segments, size).adjust_cell_length(width, ground)


class LinePanel(RoleStyles):
    """Shows the lines it was last given; drawing again what did not change costs nothing."""

    DEFAULT_CSS = "LinePanel { height: auto; width: 1fr; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: list[Line] = []

    def show(self, lines: Sequence[Line]) -> None:
        """Replace the lines; only changed ones are drawn."""
        old, self._lines = self._lines, list(lines)
        if len(old) != len(self._lines):
            self.refresh(layout=True)
            return
        changed = [y for y, (a, b) in enumerate(zip(old, self._lines, strict=True)) if a != b]
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    @property
    def text(self) -> str:
        """The lines as plain text."""
        return "\n".join("".join(text for text, _ in line) for line in self._lines)

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return max(1, len(self._lines))

    def render_line(self, y: int) -> Strip:
        line = self._lines[y] if y < len(self._lines) else []
        return self.strip(line, self.size.width)
