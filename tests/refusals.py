"""For what is refused inside a transaction: `pytest.raises` fails by what ends the writer's thread."""

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def refuses(*kinds: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kinds:
        return
    raise AssertionError(f"nothing was refused by {kinds}")
