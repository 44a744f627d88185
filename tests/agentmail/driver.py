"""Calls methods of the package by their names, the same way for both of its clients, and notes which."""

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Any

from agentmail import AgentMail, AsyncAgentMail

from tests.agentmail.clients import ONCE, agentmail, agentmail_without_async
from tests.conftest import Server

Client = AgentMail | AsyncAgentMail


def methods_of(client: object, prefix: str = "") -> Iterator[str]:
    """Every method of a client and of the clients in it, by its dotted name."""
    for name, value in inspect.getmembers(type(client)):
        if name.startswith("_") or name == "with_raw_response":
            continue
        if isinstance(value, property):
            yield from methods_of(getattr(client, name), f"{prefix}{name}.")
        elif inspect.isfunction(value):
            yield f"{prefix}{name}"


class Driver:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.driven: set[str] = set()

    def find(self, name: str) -> Any:
        found: Any = self.client
        for part in name.split("."):
            found = getattr(found, part)
        return found

    async def __call__(self, name: str, /, *given: Any, **named: Any) -> Any:
        method = self.find(name)
        self.driven.add(name)
        if isinstance(self.client, AgentMail):
            return await asyncio.to_thread(self._call, method, *given, **named)
        answer = method(*given, **named, request_options=ONCE)
        if inspect.isasyncgen(answer):
            return [each async for each in answer]
        return await answer

    @staticmethod
    def _call(method: Any, /, *given: Any, **named: Any) -> Any:
        answer = method(*given, **named, request_options=ONCE)
        return list(answer) if inspect.isgenerator(answer) else answer


@contextlib.asynccontextmanager
async def driving(server: Server, kind: type[Client], token: str = "") -> AsyncIterator[Driver]:
    if kind is AgentMail:
        with agentmail_without_async(server, token) as plain:
            yield Driver(plain)
    else:
        async with agentmail(server, token) as opened:
            yield Driver(opened)
