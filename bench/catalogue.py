"""Finds the measurements: the modules of bench.measurements."""

import importlib
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


def get(name: str) -> Measurement:
    module = importlib.import_module(f"{measurements.__name__}.{name}")
    return Measurement(name, (module.__doc__ or "").strip().splitlines()[0], module.measure)
