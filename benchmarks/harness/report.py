"""What a benchmark hands back: tables for people, the same figures for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Section:
    """One question and its answer: a table, remarks, and the raw figures."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)

    def markdown(self) -> str:
        """Return it as Markdown that also reads well as plain text."""
        parts = [f"### {self.title}"]
        if self.rows:
            parts.append(_table(self.columns, self.rows))
        parts += self.notes
        return "\n\n".join(parts) + "\n"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, *rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    rule = ["-" * width for width in widths]
    return "\n".join(_row(line, widths) for line in [columns, rule, *rows])


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return f"| {' | '.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))} |"


def write_report(
    folder: Path, name: str, command: str, machine: Mapping[str, str], sections: Sequence[Section]
) -> None:
    """Write NAME.md and NAME.json: the command, the machine, the figures."""
    folder.mkdir(parents=True, exist_ok=True)
    facts = "\n".join(f"- {key}: {value}" for key, value in machine.items())
    head = f"# Results: {name}\n\n    {command}\n\n{facts}\n"
    text = "\n".join([head, *(section.markdown() for section in sections)])
    (folder / f"{name}.md").write_text(text)
    data = {
        "command": command,
        "machine": machine,
        "sections": {section.title: section.data for section in sections},
    }
    (folder / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n")
