"""Lists of many pages as one: each page is requested when its first item is needed."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from postroom_client.limits import LONGEST_PAGE
from postroom_client.transport.exchange import Call


def behind(page: Any, kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Return the arguments of the next page; None if there is none."""
    if hasattr(page, "next"):
        name = "cursor" if "cursor" in kwargs else "after"
        return {**kwargs, name: page.next} if page.next and page.data else None
    # The server gives no more than a whole page, and less where large items would make it too large.
    is_last = len(page.data) < min(kwargs["limit"], LONGEST_PAGE) and not getattr(page, "truncated", False)
    if is_last or not page.data:
        return None
    return {**kwargs, "offset": kwargs.get("offset", 0) + len(page.data)}


def each(
    run: Callable[[Call[Any]], Any], describe: Callable[..., Call[Any]], args: tuple[Any, ...], kwargs: Any
) -> Iterator[Any]:
    wanted: dict[str, Any] | None = kwargs
    while wanted is not None:
        page = run(describe(*args, **wanted))
        yield from page.data
        wanted = behind(page, wanted)


async def async_each(
    run: Callable[[Call[Any]], Awaitable[Any]],
    describe: Callable[..., Call[Any]],
    args: tuple[Any, ...],
    kwargs: Any,
) -> AsyncIterator[Any]:
    wanted: dict[str, Any] | None = kwargs
    while wanted is not None:
        page = await run(describe(*args, **wanted))
        for item in page.data:
            yield item
        wanted = behind(page, wanted)
