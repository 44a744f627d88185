"""An example of each operation, as a command for curl and as a call of the Python client."""

from typing import Any
from urllib.parse import quote, urlencode

from tools.generate import names
from tools.generate.description import Description, Operation
from tools.generate.python_calls import arguments, positional
from tools.generate.python_source import literal, run_ruff
from tools.generate.reference import in_order, pretty

Example = dict[str, Any]
BASE_URL = "{base_url}"  # the server fills its own in
KEY = "pr_…"
WIDTH = "72"
BETWEEN = "\n\n# between two examples\n\n"


def curl(operation: Operation, example: Example) -> str:
    path = operation.path
    for name, value in example["path"].items():
        path = path.replace(f"{{{name}}}", quote(value, safe="@…"))
    query = f"?{urlencode(example['query'], safe='@:,…')}" if example["query"] else ""
    method = "" if operation.method == "GET" else f"-X {operation.method} "
    lines = [f'curl {method}"{BASE_URL}{path}{query}"']
    lines += [f'-H "Authorization: Bearer {KEY}"'] if operation.scope != "public" else []
    lines += [f'-H "{operation.header}: order-7"'] if operation.header else []
    if example["body"] is not None:
        body = pretty(in_order(example["body"], operation.body)).replace("'", "'\\''")
        lines += ['-H "Content-Type: application/json"', f"-d '{body}'"]
    return " \\\n  ".join(lines)


def python(description: Description, examples: dict[str, Example]) -> dict[str, str]:
    """By operation; formatted in one go, since each run of the formatter takes a moment."""
    operations = [each for each in names.operations_of_clients(description) if each.id in examples]
    calls = [_call(description, each, examples[each.id]) for each in operations]
    text = run_ruff(["format", "--quiet", "--line-length", WIDTH], BETWEEN.join(calls))
    made = [part.strip() for part in text.split(BETWEEN.strip())]
    assert len(made) == len(operations)
    return {each.id: call for each, call in zip(operations, made, strict=True)}


def _call(description: Description, operation: Operation, example: Example) -> str:
    order = positional(operation)
    given = []
    for each in arguments(description, operation):
        values = example.get(_PLACES.get(each.place, "")) or {}
        if each.wire not in values:
            continue
        value = _value(each.kind, values[each.wire])
        given.append(value if each.name in order else f"{each.name}={value}")
    call = f"client.{names.method_of(operation)}({', '.join(given)})"
    made = call if operation.status == 204 else f"answer = {call}"
    return f'from postroom_client import Client\n\nclient = Client("{KEY}", "{BASE_URL}")\n{made}'


_PLACES = {"path": "path", "query": "query", "body": "body", "clears": "body"}


def _value(kind: str, value: Any) -> str:
    """A query has only texts: a flag is there or not, a list is separated by commas."""
    if kind.startswith("bool") and isinstance(value, str):
        return "True"
    if kind.startswith(("int", "float")) and isinstance(value, str):
        return value
    if kind == "Sequence[str]" and isinstance(value, str):
        return literal(value.split(","))
    return literal(value)
