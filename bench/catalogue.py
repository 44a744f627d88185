"""Finds the measurements: the modules of bench.measurements."""

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from bench import measurements
from bench.results import Result


@dataclass(frozen=True, slots=True)
class Measurement:
    name: str
    description: str
    measure: Callable[[], list[Result]]


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(measurements.__path__))


def get(name: str, size: int | None = None) -> Measurement:
    """Those that have a size take another one."""
    module = importlib.import_module(f"{measurements.__name__}.{name}")
    takes_size = size is not None and "size" in inspect.signature(module.measure).parameters
    measure = functools.partial(module.measure, size=size) if takes_size else module.measure
    return Measurement(name, (module.__doc__ or "").strip().splitlines()[0], measure)
