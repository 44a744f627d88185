"""The text printed at the start: all addresses, and how to begin."""

import shlex
from typing import TYPE_CHECKING

from postroom import __version__
from postroom.config import CAPTURE, Config, Endpoint, own_url

if TYPE_CHECKING:
    from postroom.assembly import Postroom


def welcome(postroom: "Postroom") -> str:
    config = postroom.resources.config
    place = "PostgreSQL" if config.database_url else str(config.data_dir.absolute())
    lines = [
        f"Postroom {__version__} is ready.",
        "",
        f"  Dashboard  {config.base_url}/app",
        f"  API        {config.base_url}",
        f"  API docs   {config.base_url}/docs",
        f"  SMTP       {Endpoint(config.smtp.host, postroom.smtp_port)}",
        f"  Data       {place}",
        f"  Sending    {way_out(config)}",
    ]
    if postroom.first_token is None:
        return "\n".join(
            [*lines, "", "Create an API key: postroom keys create --account default --name NAME", ""]
        )
    return "\n".join(
        [
            *lines,
            f"  API key    {shown_key(postroom)}",
            f"  Sign in    {link_url(config, postroom.first_link or '')}   (works once)",
            "",
            "Create your first inbox:",
            "",
            f"  curl -X POST {config.base_url}/v1/inboxes \\",
            f"    -H {quoted_header(postroom)} \\",
            "    -H 'Content-Type: application/json' \\",
            """    -d '{"mailboxName": "hello", "displayName": "My first agent"}'""",
            "",
        ]
    )


def shown_key(postroom: "Postroom") -> str:
    """Return the key, unless the operator set it: a log may be read by many."""
    if postroom.resources.config.api_key:
        return "as POSTROOM_API_KEY says"
    return f"{postroom.first_token}   (shown only once)"


def quoted_header(postroom: "Postroom") -> str:
    if postroom.resources.config.api_key:
        return '"Authorization: Bearer $POSTROOM_API_KEY"'
    return shlex.quote(f"Authorization: Bearer {postroom.first_token}")


def link_url(config: Config, token: str) -> str:
    return f"{config.base_url or own_url(config)}/app/sign-in?link={token}"


def way_out(config: Config) -> str:
    """Return the outbound route, without the password of a relay."""
    if config.outbound == CAPTURE:
        return "captured locally, not sent (POSTROOM_OUTBOUND=mx sends it)"
    return "directly to the recipients' mail servers" if config.outbound == "mx" else "through a relay"
