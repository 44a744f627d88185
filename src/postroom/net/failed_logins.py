"""Delays after wrong passwords, by the client's network and the user name."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from postroom.limits import ADDRESS_CHARACTERS
from postroom.net.proxies import network_of

FREE_FAILURES = 3  # a person mistypes
LONGEST_WAIT_SECONDS = 30.0
REMEMBERED = 10_000


class FailedLogins:
    """By address and name: after three failures the answer waits 1, 2, 4 … 30 seconds."""

    def __init__(self) -> None:
        self._failures: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, address: str, name: str) -> AsyncIterator[None]:
        """Wait for a turn: of many attempts at once, each would see the failures from before all of them."""
        lock = self._turns.setdefault(_who(address, name), asyncio.Lock())
        async with lock:
            yield

    def wait_seconds(self, address: str, name: str) -> float:
        failures = self._failures.get(_who(address, name), 0)
        return (
            0.0 if failures < FREE_FAILURES else min(2.0 ** (failures - FREE_FAILURES), LONGEST_WAIT_SECONDS)
        )

    def record(self, address: str, name: str) -> None:
        who = _who(address, name)
        self._failures[who] = min(self._failures.pop(who, 0) + 1, 20)
        if len(self._failures) > REMEMBERED:
            self._failures.popitem(last=False)

    def forget(self, address: str, name: str) -> None:
        self._failures.pop(_who(address, name), None)


def _who(address: str, name: str) -> tuple[str, str]:
    return network_of(address), name[:ADDRESS_CHARACTERS].lower()
