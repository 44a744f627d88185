"""One test of many samples: a test for each of thousands would cost more than all that they check."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

LONGEST_NAME = 120


def samples(names: str | tuple[str, ...], values: Iterable[Any]) -> Callable[[Callable[..., None]], Any]:
    """Written as `pytest.mark.parametrize`. All are tried, and every one that fails is told."""
    fields = (names,) if isinstance(names, str) else names
    cases = [
        dict(zip(fields, (value,) if isinstance(names, str) else value, strict=True)) for value in values
    ]

    def decorate(test: Callable[..., None]) -> Callable[[], None]:
        @functools.wraps(test)
        def try_all() -> None:
            assert cases
            failures = [failure for case in cases if (failure := failure_of(test, case))]
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(cases)} samples", failures)

        try_all.__signature__ = inspect.Signature()  # type: ignore[attr-defined]  # no fixture has these names
        return try_all

    return decorate


def failure_of(test: Callable[..., None], case: dict[str, Any]) -> BaseException | None:
    try:
        test(**case)
    except (Exception, pytest.fail.Exception) as error:
        told = ", ".join(f"{name}={value!r}"[:LONGEST_NAME] for name, value in case.items())
        error.add_note(f"with the sample {told}")
        return error
    return None
