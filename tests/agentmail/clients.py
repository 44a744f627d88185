"""The clients of the package, at a server of the tests."""

import contextlib
from collections.abc import AsyncIterator, Iterator

import httpx
from agentmail import AgentMail, AsyncAgentMail
from agentmail.environment import AgentMailEnvironment

from tests.conftest import Server
from tests.plain_transport import trusting

ONCE = {"max_retries": 0}


def environment(server: Server) -> AgentMailEnvironment:
    return AgentMailEnvironment(http=server.base_url, websockets=server.base_url.replace("http", "ws"))


@contextlib.asynccontextmanager
async def agentmail(server: Server, token: str = "") -> AsyncIterator[AsyncAgentMail]:
    async with httpx.AsyncClient(
        timeout=120, verify=trusting(), trust_env=False, follow_redirects=True
    ) as http:
        key = token or server.token
        yield AsyncAgentMail(api_key=key, environment=environment(server), httpx_client=http)


@contextlib.contextmanager
def agentmail_without_async(server: Server, token: str = "") -> Iterator[AgentMail]:
    with httpx.Client(timeout=120, verify=trusting(), trust_env=False, follow_redirects=True) as http:
        yield AgentMail(api_key=token or server.token, environment=environment(server), httpx_client=http)
