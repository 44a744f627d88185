"""Tools by which an agent sets up what its key allows: a key for an inbox, a domain."""

from dataclasses import dataclass
from typing import Annotated

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from postroom_client.calls import calls
from postroom_client.mcp.api_caller import ApiCaller, Ctx
from postroom_client.results import Domain


@dataclass(frozen=True)
class NewInboxKey:
    key_id: str
    inbox_id: str
    token: Annotated[str, Field(description="Shown only once.")]


@dataclass(frozen=True)
class DnsRecordState:
    type: str
    name: str
    value: str
    found: Annotated[bool | None, Field(description="null: not looked up yet.")]


@dataclass(frozen=True)
class DomainState:
    domain: str
    is_verified: bool
    records: list[DnsRecordState]


class SettingUpTools:
    def __init__(self, api: ApiCaller) -> None:
        self._api = api

    async def create_key_for_inbox(
        self,
        ctx: Ctx,
        inbox_id: Annotated[str, Field(description="Id of the inbox, inb_…", min_length=1)],
        name: Annotated[str, Field(description="What the key is for.")] = "",
    ) -> NewInboxKey:
        """Create a key for one inbox only, for another program. Keep it secret."""
        made = await self._api.call(ctx, calls.create_api_key(inbox_id, name))
        return NewInboxKey(made.id, inbox_id, made.token or "")

    async def check_domain(
        self, ctx: Ctx, domain: Annotated[str, Field(description="A domain of the account.", min_length=1)]
    ) -> DomainState:
        """Look the records of a domain up in DNS, and say which are missing."""
        page = await self._api.call(ctx, calls.list_domains(limit=100))
        wanted = domain.lower().rstrip(".")
        found = next((each for each in page.data if each.domain == wanted), None)
        if found is None:
            raise ToolError(f"{domain} is not a domain of this account.")
        return _state(await self._api.call(ctx, calls.verify_domain(found.id)))


def _state(domain: Domain) -> DomainState:
    records = [
        DnsRecordState(record.type, record.name, record.value, record.found) for record in domain.records
    ]
    return DomainState(domain.domain, domain.status == "verified", records)
