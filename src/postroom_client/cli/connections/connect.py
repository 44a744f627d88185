"""postroom connect: from nothing to an email received from outside and one sent."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom_client.cli import output
from postroom_client.cli.command import InboxId, command
from postroom_client.cli.connections.services import MAILBOXES, NAMES, OWN_MAILBOX, SERVICES
from postroom_client.cli.context import FAILED, CommandContext
from postroom_client.cli.doctor import MARKS
from postroom_client.cli.groups import app
from postroom_client.cli.safe_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from postroom_client.cli.doctor_checks import Finding
    from postroom_client.results import Connection


@command(app, "connect")
def connect(
    context: CommandContext,
    way: Annotated[str, typer.Argument(help=f"One of {', '.join(NAMES)}.")],
    username: Annotated[
        str | None, typer.Option(help="User name of the mailbox, usually its address.")
    ] = None,
    password: Annotated[
        str | None, typer.Option(help="Usually an app password; asked for if left out.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Host of the IMAP server (imap).")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="993 is TLS, others STARTTLS.")] = None,
    smtp_host: Annotated[str | None, typer.Option(help="Host of the SMTP server for sending (imap).")] = None,
    smtp_port: Annotated[int, typer.Option(min=1, max=65535, help="465 is TLS, others STARTTLS.")] = 465,
    client_id: Annotated[
        str | None, typer.Option(help="Client id of your app, for OAuth instead of a password.")
    ] = None,
    client_secret: Annotated[str | None, typer.Option(help="Client secret of your app (OAuth).")] = None,
    refresh_token: Annotated[
        str | None, typer.Option(help="Refresh token given to your app (OAuth).")
    ] = None,
    token_url: Annotated[
        str | None, typer.Option(help="Token URL of the OAuth provider; known for gmail and microsoft.")
    ] = None,
    signing_key: Annotated[str | None, typer.Option(help="Key with which a service signs its posts.")] = None,
    service_key: Annotated[str | None, typer.Option(help="API key of the service (resend).")] = None,
    to: Annotated[str | None, typer.Option(help="Where to send the test email.")] = None,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait for each check.")] = 120,
    inbox_id: InboxId = None,
) -> None:
    """Connect a mailbox or a mail service, and check that email arrives and is sent.

    Exits with 1 when a check fails.
    """
    from postroom_client.cli.connections import checks

    if way not in NAMES:
        raise typer.BadParameter(f"must be one of {', '.join(NAMES)}", param_hint="way")
    inbox = inbox_id or context.settings.inbox_id
    if way in SERVICES:
        made = connect_service(context, way, signing_key, service_key, inbox_id)
    else:
        inbox = context.require_inbox_id(inbox_id)
        asked = mailbox_fields(way, username, host, port, smtp_host, smtp_port)
        if client_id or refresh_token or not takes_passwords(way):
            asked["oauth"] = oauth_fields(way, token_url, client_id, client_secret, refresh_token)
        else:
            asked["password"] = password or ask("--password", "Password", is_hidden=True)
        made = context.client.create_connection("imap", inbox_id=inbox, **asked)
    finish(context, made, checks.examine(context.client, made, inbox, to, timeout))


def connect_service(
    context: CommandContext, way: Any, signing_key: str | None, service_key: str | None, inbox_id: str | None
) -> "Connection":
    made = context.client.create_connection(
        "http", provider=way, signing_key=signing_key, api_key=service_key, inbox_id=inbox_id
    )
    output.note(f"The URL, shown only once: {made.url}")
    output.note(f"Set it at the service: {SERVICES[way]}")
    output.note("Then send an email from anywhere to one of your inboxes.")
    return made


def mailbox_fields(
    way: str,
    username: str | None,
    host: str | None,
    port: int | None,
    smtp_host: str | None,
    smtp_port: int,
) -> dict[str, Any]:
    known = MAILBOXES.get(way)
    if known is not None:
        host, smtp_host, smtp_port = known.host, known.smtp_host, known.smtp_port
        output.note(known.password)
    fields: dict[str, Any] = {
        "host": host or ask("--host", "IMAP server"),
        "username": username or ask("--username", "User name, usually the address"),
    }
    if port is not None and way == OWN_MAILBOX:
        fields["port"] = port
    if smtp_host:
        fields["smtp"] = {"host": smtp_host, "port": smtp_port}
    return fields


def takes_passwords(way: str) -> bool:
    return way not in MAILBOXES or MAILBOXES[way].takes_passwords


def oauth_fields(
    way: str,
    token_url: str | None,
    client_id: str | None,
    client_secret: str | None,
    refresh_token: str | None,
) -> dict[str, str]:
    """Return the fields for OAuth, which replace the password."""
    known = MAILBOXES[way].token_url if way in MAILBOXES else ""
    return {
        "tokenUrl": token_url or known or ask("--token-url", "Token URL of the OAuth provider"),
        "clientId": client_id or ask("--client-id", "Client id of your app"),
        "clientSecret": client_secret or ask("--client-secret", "Its secret", is_hidden=True),
        "refreshToken": refresh_token or ask("--refresh-token", "Refresh token", is_hidden=True),
    }


def ask(option: str, question: str, is_hidden: bool = False) -> str:
    """Ask a person on a terminal. A program must give the value as an option."""
    if not output.can_ask():
        raise typer.BadParameter("is missing", param_hint=option)
    answer: str = typer.prompt(question, hide_input=is_hidden, err=True)
    return answer


def report(context: CommandContext, finding: "Finding") -> None:
    """Print a finding at once: a person waits for it."""
    if not context.is_json:
        output.note(one_line(f"{MARKS[finding.verdict]:<4}  {finding.name}: {finding.detail}"))
        if finding.next_step:
            output.note(one_line(f"      {finding.next_step}"))


def finish(context: CommandContext, made: "Connection", coming: "Iterable[Finding]") -> None:
    findings = []
    for finding in coming:
        findings.append(finding)
        report(context, finding)
    has_failed = any(finding.verdict == "fail" for finding in findings)
    record = {"connectionId": made.id, "url": made.url, "checks": [each.to_json() for each in findings]}
    if context.is_json:
        output.print_json(output.encode(record))
    elif not has_failed:
        output.note(f"{made.id} works.")
    if has_failed:
        raise typer.Exit(FAILED)
