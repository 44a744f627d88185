"""All regular expressions of the source: those that modules hold, and those that a function makes."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

import postroom
import postroom_client
import postroom_mail
from postroom.web.dashboard.routes import PAGES
from postroom.web.routes import ROUTES
from postroom_mail.languages.patterns import _Late
from postroom_mail.reports import reason_words

SEARCHING = frozenset({"search", "finditer", "findall", "sub", "subn", "split"})
ANCHORED = frozenset({"match", "fullmatch"})
ASKING = re.compile(rf"\b(\w+)\s*\.({'|'.join(SEARCHING | ANCHORED)})\(")
ASKING_RE = re.compile(r"^[ ].*\bre\.", re.MULTILINE)
DEEPEST = 5
LEAVES = (str, bytes, int, type, ModuleType, type(None))


@dataclass(frozen=True)
class Found:
    place: str  # a module and a name, or a file and a line
    pattern: re.Pattern[Any]


@dataclass(frozen=True)
class Made:
    """A call that makes a pattern from what is only known when it is called."""

    place: str  # a module and a function


def modules() -> Iterator[ModuleType]:
    for package in (postroom, postroom_client, postroom_mail):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def held() -> Iterator[Found]:
    """Those that a module, or a value inside of it, holds."""
    for module in modules():
        for name, value in vars(module).items():
            place = f"{module.__name__}.{name}"
            inside = vars(value).values() if _is_own_class(value, module) else [value]
            for each in inside:
                yield from (Found(place, pattern) for pattern in _inside(each, DEEPEST))
    for words in vars(reason_words).values():
        if isinstance(words, reason_words.Words):
            place = f"{reason_words.__name__}.{words.english[:20]}"
            yield from (Found(place, pattern) for pattern in reason_words._patterns(words))


def _is_own_class(value: object, module: ModuleType) -> bool:
    return isinstance(value, type) and value.__module__ == module.__name__


def _inside(value: Any, depth: int) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, _Late):
        yield value._compiled
    elif isinstance(value, re.Pattern):
        yield value
    elif depth > 0:
        for each in _parts(value):
            if not isinstance(each, LEAVES):
                yield from _inside(each, depth - 1)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list | tuple | set | frozenset):
        return value
    names = getattr(value, "__struct_fields__", getattr(value, "__dataclass_fields__", ()))
    return () if isinstance(value, LEAVES) else (getattr(value, name) for name in names)


def of_types() -> Iterator[Found]:
    """Patterns that msgspec holds texts against."""
    for route in (*ROUTES, *PAGES):
        for kind in (route.body, route.query):
            if kind is not None:
                for text in _patterns_of(msgspec.inspect.type_info(kind)):
                    yield Found(f"{route.name} {kind.__name__}", re.compile(text))


def _patterns_of(kind: Any) -> Iterator[str]:
    if isinstance(kind, msgspec.inspect.StrType) and kind.pattern:
        yield kind.pattern
    for name in getattr(kind, "__struct_fields__", ()):
        value = getattr(kind, name)
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, msgspec.inspect.Type | msgspec.inspect.Field):
                yield from _patterns_of(each)


@cache
def in_functions() -> list[Found | Made]:
    """`re.compile`, `re.sub` and the like inside of functions, of a text that stands there or of another."""
    return list(_in_functions())


def _in_functions() -> Iterator[Found | Made]:
    asking = ((path, ast.parse(text)) for path, text in sources() if ASKING_RE.search(text))
    for path, tree in asking:
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
                if _is_of_re(call.func):
                    text = call.args[0]
                    if isinstance(text, ast.Constant):
                        yield Found(f"{path}:{call.lineno}", re.compile(text.value))
                    else:
                        yield Made(f"{path.removesuffix('.py').replace('/', '.')}.{function.name}")


def _is_of_re(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
        and function.attr in SEARCHING | ANCHORED | {"compile"}
    )


@cache
def sources() -> list[tuple[str, str]]:
    """Paths and texts of all."""
    folders = [Path(package.__path__[0]) for package in (postroom, postroom_client, postroom_mail)]
    return [
        (str(path.relative_to(folder.parent)), path.read_text())
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
    ]


@cache
def asked_places() -> tuple[frozenset[str], frozenset[str]]:
    """Names of modules that look at the beginning of a text (`match`, `fullmatch`), or all through it."""
    anchored: set[str] = set()
    searched: set[str] = set()
    for path, text in sources():
        module = path.removesuffix(".py").replace("/", ".")
        for name, asked in ASKING.findall(text):
            (anchored if asked in ANCHORED else searched).add(f"{module}.{name}")
    return frozenset(anchored), frozenset(searched)


def is_searched(places: Iterable[str]) -> bool:
    """Unless all modules that know it ask for the beginning alone."""
    anchored, searched = asked_places()
    return not anchored.intersection(places) or not searched.isdisjoint(places)
