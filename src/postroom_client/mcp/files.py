"""The tool for files that should not pass through a model: links that work once."""

from dataclasses import dataclass
from typing import Annotated

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from postroom_client.calls import calls
from postroom_client.mcp.api_caller import ApiCaller, Ctx, InboxId
from postroom_client.mcp.results import Moment


@dataclass(frozen=True)
class FileLink:
    url: str
    expires_at: Moment | None
    upload_id: Annotated[str | None, Field(description="Attach this once the file was uploaded.")]
    how: str


class FileTools:
    def __init__(self, api: ApiCaller) -> None:
        self._api = api

    async def create_file_link(
        self,
        ctx: Ctx,
        filename: str,
        message_id: Annotated[
            str, Field(description="Download this email's attachment; empty: upload.")
        ] = "",
        inbox_id: InboxId = "",
        content_type: str = "",
        size_bytes: Annotated[int | None, Field(description="Exact size, to upload.", ge=0)] = None,
    ) -> FileLink:
        """Create a link for curl to upload or download one file, once in 15 minutes."""
        if message_id:
            given = await self._api.call(ctx, calls.create_download_link(message_id, filename))
            return FileLink(given.url, given.expires_at, None, "GET url, without a key, for example: curl -O")
        if size_bytes is None:
            raise ToolError("Pass size_bytes to upload a file, or message_id to download one.")
        found = await self._api.inbox_id(ctx, inbox_id)
        kind = content_type or "application/octet-stream"
        made = await self._api.call(ctx, calls.create_upload(found, filename, kind, size_bytes))
        how = "PUT the file to url, without a key: curl -T FILE URL. Then pass upload_id in attachments."
        return FileLink(made.url, made.expires_at, made.id, how)
