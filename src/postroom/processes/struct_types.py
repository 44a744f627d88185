"""What msgspec needs to decode a class, built while there is one thread."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import msgspec

_prepared: set[type[Any]] = set()
_modules = 0  # that were loaded when all were prepared


def prepare() -> None:
    """Build the tables of every class that is loaded and was not prepared before.

    msgspec builds them when a class is first decoded. A second thread that decodes the same class at that
    moment reads a table with gaps, and the process ends with a segmentation fault (msgspec 0.22).
    """
    global _modules
    if _modules == len(sys.modules):
        return
    _modules = len(sys.modules)
    for kind in set(loaded()) - _prepared:
        # What cannot be decoded has fields of types that only the program makes.
        with contextlib.suppress(TypeError, NameError):
            msgspec.json.Decoder(kind)
        _prepared.add(kind)


def loaded(of: type[Any] = msgspec.Struct) -> Iterator[type[Any]]:
    subclasses: list[type[Any]] = of.__subclasses__()
    for kind in subclasses:
        yield kind
        yield from loaded(kind)
