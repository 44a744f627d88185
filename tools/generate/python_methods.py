"""Makes the methods of both clients: of each operation, and of what is put together by hand from several."""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from tools.generate import names
from tools.generate.description import Description, Operation
from tools.generate.python_calls import answer, arguments, positional, signature
from tools.generate.python_results import answered_shapes
from tools.generate.python_source import documented, module

CLIENT = Path(__file__).parents[2] / "src" / "postroom_client"
BY_HAND = ("sending", "shortcuts", "waiting")
PAGE = 100
IMPORTS = (
    "from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence",
    "from datetime import date, datetime",
    "from typing import Any, Literal, Protocol, TypeVar, Unpack",
    "from msgspec import UNSET, UnsetType",
    f"from postroom_client.calls import calls, {', '.join(BY_HAND)}",
    "from postroom_client.calls.arguments import Addresses, File",
    "from postroom_client.calls.calls import SendOptions",
    "from postroom_client.transport import paging",
    "from pathlib import Path",
    "from postroom_client.transport.exchange import Call, OutgoingFile, Steps",
)


@dataclass(frozen=True)
class Method:
    """`called` is what describes the request, `passed` the arguments in the order of the signature."""

    name: str
    signature: str
    result: str
    docstring: str
    called: str
    positional: tuple[str, ...]
    named: tuple[str, ...]
    more: str = ""
    item: str = ""  # of the list that it gives a page of
    iterator: str = ""


def methods(description: Description) -> str:
    made = [_of_operation(description, each) for each in names.operations_of_clients(description)]
    made += [method for stem in BY_HAND for method in _by_hand(stem)]
    results = sorted({names.result_of(each) for each in answered_shapes(description)})
    shapes = f"from postroom_client.results import Page, {', '.join(results)}"
    classes = [_class("BlockingMethods", made, ""), _class("AwaitedMethods", made, "async ")]
    docstring = "The methods of `Client` and of `AsyncClient`: each describes a request and runs it."
    return module(docstring, [*IMPORTS, shapes], ['T = TypeVar("T")\n', *classes])


def _class(name: str, made: list[Method], word: str) -> str:
    wait = "await " if word else ""
    lines = [f"class {name}(Protocol):"]
    lines += [f"    {word}def run(self, work: Call[T] | Steps[T], /) -> T: ...\n"]
    for method in made:
        lines += [
            f"    {word}def {method.name}({method.signature}) -> {method.result}:",
            f"        {method.docstring}",
            f"        return {wait}self.run({method.called}({_passed(method)}))\n",
        ]
        lines += _iterator(method, word) if method.iterator else []
    return "\n".join(lines)


def _iterator(method: Method, word: str) -> list[str]:
    kind, each = ("AsyncIterator", "async_each") if word else ("Iterator", "each")
    larger = re.sub(r"limit: int ?= ?\d+", f"limit: int = {PAGE}", method.signature)
    first = "".join(f"{name}, " for name in method.positional)
    named = ", ".join(f'"{name}": {name}' for name in method.named)
    return [
        f"    def {method.iterator}({larger}) -> {kind}[{method.item}]:",
        f"        {documented(f'{_said(method)}; pages are fetched as needed', ' ' * 8)}",
        f"        return paging.{each}(self.run, {method.called}, ({first}), {{{named}}})\n",
    ]


def _said(method: Method) -> str:
    return method.docstring.strip('"').strip().rstrip(".")


def _passed(method: Method) -> str:
    named = [f"{name}={name}" for name in method.named]
    return ", ".join([*method.positional, *named, *([f"**{method.more}"] if method.more else [])])


def _of_operation(description: Description, operation: Operation) -> Method:
    order = positional(operation)
    made = arguments(description, operation)
    item = _item_of(description, operation)
    return Method(
        name=names.method_of(operation),
        signature=signature(description, operation, own="self"),
        result=answer(description, operation),
        docstring=documented(operation.summary, " " * 8),
        called=f"calls.{names.method_of(operation)}",
        positional=order,
        named=tuple(each.name for each in made[len(order) :]),
        item=item,
        iterator=names.iterator_of(operation) if item else "",
    )


def _item_of(description: Description, operation: Operation) -> str:
    """Of what a list is, where there may be pages behind the first."""
    if not operation.result or "limit" not in {each.name for each in operation.query}:
        return ""
    data = next(each for each in description.shapes[operation.result].fields if each.name == "data")
    return names.result_of(data.kind.parts[0].shape)


def _by_hand(stem: str) -> list[Method]:
    tree = ast.parse((CLIENT / "calls" / f"{stem}.py").read_text())
    functions = [each for each in tree.body if isinstance(each, ast.FunctionDef)]
    return [_of_function(stem, each) for each in functions if _is_method(each)]


def _is_method(function: ast.FunctionDef) -> bool:
    is_described = ast.unparse(function.returns or ast.Constant("")).startswith(("Call[", "Steps["))
    return is_described and not function.name.startswith("_")


def _of_function(stem: str, function: ast.FunctionDef) -> Method:
    result = ast.unparse(function.returns or ast.Constant("")).partition("[")[2].removesuffix("]")
    is_list = function.name.startswith("list_") and result.startswith("Page[")
    arguments_of = function.args
    return Method(
        name=function.name,
        signature=f"self, {ast.unparse(arguments_of)}",
        result=result,
        docstring=f'"""{ast.get_docstring(function, clean=False)}"""'.replace("\n", "\n    "),
        called=f"{stem}.{function.name}",
        positional=tuple(each.arg for each in arguments_of.args),
        named=tuple(each.arg for each in arguments_of.kwonlyargs),
        more=arguments_of.kwarg.arg if arguments_of.kwarg else "",
        item=result.removeprefix("Page[").removesuffix("]") if is_list else "",
        iterator=function.name.replace("list_", "iter_", 1) if is_list else "",
    )
