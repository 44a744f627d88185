"""Makes methods of described calls: one that blocks, one that is awaited, and iterators over all pages."""

import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Concatenate, ParamSpec, TypeVar, get_args

from postroom_client.results import Page
from postroom_client.transport import paging
from postroom_client.transport.exchange import Call, Steps

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def blocking(describe: Callable[P, Call[T] | Steps[T]]) -> Callable[Concatenate[Any, P], T]:
    @functools.wraps(describe)
    def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self.run(describe(*args, **kwargs))
        return result

    return _shown(method, describe, _result_of(describe))


def awaited(describe: Callable[P, Call[T] | Steps[T]]) -> Callable[Concatenate[Any, P], Awaitable[T]]:
    @functools.wraps(describe)
    async def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await self.run(describe(*args, **kwargs))
        return result

    return _shown(method, describe, _result_of(describe))


def each(describe: Callable[P, Call[Page[T]]]) -> Callable[Concatenate[Any, P], Iterator[T]]:
    @functools.wraps(describe)
    def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return paging.each(self.run, describe, args, kwargs)

    return _shown(method, describe, Iterator[_item_of(describe)])  # type: ignore[misc]


def async_each(describe: Callable[P, Call[Page[T]]]) -> Callable[Concatenate[Any, P], AsyncIterator[T]]:
    @functools.wraps(describe)
    def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        return paging.async_each(self.run, describe, args, kwargs)

    return _shown(method, describe, AsyncIterator[_item_of(describe)])  # type: ignore[misc]


def _result_of(describe: Callable[..., Any]) -> Any:
    """What a call, or the last of its steps, gives."""
    return get_args(inspect.signature(describe).return_annotation)[-1]


def _item_of(describe: Callable[..., Any]) -> Any:
    return get_args(_result_of(describe))[0]


def _shown(method: F, describe: Callable[..., Any], result: Any) -> F:
    """For help(): the real result, not the description of the call."""
    described = inspect.signature(describe)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    parameters = [own, *described.parameters.values()]
    vars(method)["__signature__"] = described.replace(parameters=parameters, return_annotation=result)
    return method
