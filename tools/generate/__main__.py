"""make generate: writes every generated file anew; with --check it only says which differ."""

import sys
from collections.abc import Callable
from pathlib import Path

from tools.generate import (
    accuracy,
    decisions,
    description,
    events,
    frameworks,
    limits,
    log_lines,
    mcp_tools,
    metrics,
    python_calls,
    python_commands,
    python_limits,
    python_methods,
    python_results,
    reference,
    reference_pages,
    settings,
    signal_rules,
    typescript,
    whole_schema,
)
from tools.generate.description import Description

ROOT = Path(__file__).parents[2]
CLIENT = "src/postroom_client"
TYPESCRIPT = "clients/typescript/src"
FILES: dict[str, Callable[[Description], str]] = {
    f"{CLIENT}/results.py": python_results.results,
    f"{CLIENT}/errors.py": python_results.errors,
    f"{CLIENT}/limits.py": python_limits.limits_of_client,
    f"{CLIENT}/calls/calls.py": python_calls.calls,
    f"{CLIENT}/calls/methods.py": python_methods.methods,
    f"{CLIENT}/calls/operations.py": python_commands.operations,
    "docs/reference.md": reference.reference,
    "src/postroom/web/dashboard/reference/reference.json": reference_pages.reference_pages,
    "src/postroom/storage/schema/sqlite/whole.sql": whole_schema.whole_schema,
    "docs/decisions.md": decisions.decisions,
    "docs/events.md": events.events,
    "docs/mcp-tools.md": mcp_tools.mcp_tools,
    "docs/settings.md": settings.settings,
    "docs/metrics.md": metrics.metrics,
    "docs/limits.md": limits.limits_page,
    "docs/log-lines.md": log_lines.log_lines,
    "docs/accuracy.md": accuracy.accuracy,
    "docs/signal-rules.md": signal_rules.signal_rules,
    **{f"docs/{name}.md": frameworks.page(name) for name in frameworks.FRAMEWORKS},
    f"{TYPESCRIPT}/types.ts": typescript.types,
    f"{TYPESCRIPT}/errors.ts": typescript.errors,
    f"{TYPESCRIPT}/operations.ts": typescript.operations,
}


def outdated() -> dict[Path, str]:
    """The files that differ from what would be made now, with what that is."""
    described = description.load()
    made = {ROOT / name: make(described) for name, make in FILES.items()}
    return {path: text for path, text in made.items() if not path.exists() or path.read_text() != text}


def main() -> int:
    found = outdated()
    for path, text in found.items():
        if "--check" not in sys.argv:
            path.write_text(text)
        print(path.relative_to(ROOT))
    return 1 if found and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
