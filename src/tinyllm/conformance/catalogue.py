"""Write the list of cases in docs/conformance.md, from the cases themselves.

    python -m tinyllm.conformance.catalogue docs/conformance.md

replaces what stands between the two markers; a test compares the file with `catalogue()`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tinyllm.conformance.case import Case, all_cases
from tinyllm.conformance.selftest.fault import Fault, all_faults

BEGIN: Final = (
    "<!-- cases: made by `python -m tinyllm.conformance.catalogue docs/conformance.md` -->"
)
END: Final = "<!-- end of the cases -->"


def catalogue() -> str:
    """Return the list as Markdown: a section per case, one for cases that differ in their suite."""
    faults = all_faults()
    groups: dict[tuple[str, str, str], list[Case]] = {}
    for case in all_cases():
        groups.setdefault((case.summary, case.rule, case.why), []).append(case)
    return "\n".join(_section(cases, faults) for cases in groups.values())


def _section(cases: Sequence[Case], faults: Sequence[Fault]) -> str:
    case, ids = cases[0], {case.id for case in cases}
    levels = [f"{level.value} in `{profile.value}`" for profile, level in case.levels.items()]
    need = [f"needs `{case.need.value.split(',')[0].split(':')[0]}`"] if case.need else []
    caught = {fault.summary: None for fault in faults if ids.intersection(fault.caught_by)}
    lines = [
        f"#### {', '.join(f'`{case.id}`' for case in cases)}",
        "",
        f"{case.summary} ({', '.join([*levels, *need])})",
        "",
        f"- **Rule:** {case.rule}.",
        f"- **Why:** {case.why}",
        f"- **Fails when:** {' '.join(caught)}",
        "",
    ]
    return "\n".join(lines)


def renewed(document: str) -> str:
    """Return the document with its list of cases as it should be. Raises ValueError."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the document has no {BEGIN} and {END}")
    return f"{before}{begin}\n\n{catalogue()}\n{end}{after}"


def main(argv: Sequence[str]) -> int:
    """Renew the documents that are named."""
    for name in argv:
        path = Path(name)
        path.write_text(renewed(path.read_text("utf-8")), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
