"""postroom login, postroom profiles …"""

import os
import re
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from postroom_client.cli import output
from postroom_client.cli.command import command
from postroom_client.cli.context import CommandContext, patience
from postroom_client.cli.groups import GROUPS, app

if TYPE_CHECKING:
    from postroom_client.client import Client
    from postroom_client.profiles import Profiles
    from postroom_client.settings import Flags

DEFAULT_NAME = "default"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

profiles_app = GROUPS["profiles"]


@command(app, "login")
def login(
    context: CommandContext,
    url: Annotated[
        str, typer.Argument(help="The server; a person allows the sign-in there in a browser.")
    ] = "",
) -> None:
    """Sign in and save the key in a profile.

    With a URL and no key, a browser opens where a person compares a code and allows it. Otherwise the key is
    --api-key (- reads stdin), POSTROOM_API_KEY, or asked for on a terminal.
    """
    from postroom_client import profiles
    from postroom_client.cli.accounts import device_login
    from postroom_client.client import Client

    known = profiles.load()
    name = _require_name(context.flags.profile or os.environ.get("POSTROOM_PROFILE") or DEFAULT_NAME)
    base_url = url.rstrip("/") or _base_url(context.flags, known, name)
    has_key = context.flags.api_key or os.environ.get("POSTROOM_API_KEY")
    token = device_login.ask(context, base_url) if url and not has_key else _key(context.flags, base_url)
    with Client(token, base_url, patience=patience()) as client:
        me = client.me()
        profile = profiles.Profile(base_url, client.api_key, me.inbox_id or _only_inbox(client))
    place = profiles.save(known.with_profile(name, profile, make_current=True))
    context.done(
        {"profile": name, "baseUrl": base_url, "accountId": me.account_id, "inboxId": profile.inbox_id},
        f"Signed in to {base_url} as {me.account_name}. Profile '{name}' is saved in {place}",
    )


@command(profiles_app, "list")
def list_all(context: CommandContext) -> None:
    """List the profiles."""
    from postroom_client import profiles

    known = profiles.load()
    shown = [
        {"name": name, "baseUrl": item.base_url, "inboxId": item.inbox_id, "current": name == known.current}
        for name, item in known.profiles.items()
    ]
    context.show_result(output.encode({"data": shown, "total": len(shown)}), known, _show_profiles)


@command(profiles_app, "use")
def use(context: CommandContext, name: Annotated[str, typer.Argument(help="Name of the profile.")]) -> None:
    """Choose the profile that commands use."""
    from postroom_client import profiles

    known = profiles.load()
    profile = known.find(name)
    if profile is None:
        raise profiles.InvalidProfile(f"There is no profile '{name}'. See: postroom profiles list")
    profiles.save(known.with_profile(name, profile, make_current=True))
    context.done({"profile": name, "baseUrl": profile.base_url}, f"Commands now use {profile.base_url}.")


@command(profiles_app, "delete")
def remove(
    context: CommandContext, name: Annotated[str, typer.Argument(help="Name of the profile.")]
) -> None:
    """Remove a profile and its key from this computer; the key stays valid."""
    from postroom_client import profiles

    known = profiles.load()
    if known.find(name) is None:
        raise profiles.InvalidProfile(f"There is no profile '{name}'. See: postroom profiles list")
    profiles.save(known.without_profile(name))
    context.done(
        {"profile": name, "removed": True}, f"Profile '{name}' and its key are removed from this computer."
    )


@command(app, "logout")
def logout(context: CommandContext) -> None:
    """Remove the profile in use and its key from this computer; the key stays valid."""
    remove(context, context.settings.profile)


@command(app, "open")
def open_pages(context: CommandContext) -> None:
    """Open the dashboard in a browser; without one, print its address."""
    import webbrowser

    url = f"{context.settings.base_url}/app"
    is_open = not context.is_json and webbrowser.open(url)
    context.done({"url": url}, f"Opened {url}" if is_open else url)


def _require_name(name: str) -> str:
    """Return the name of the profile, which must be usable in file names."""
    if not NAME.fullmatch(name):
        raise typer.BadParameter(
            "a profile's name has at most 64 letters, digits, dots, dashes and underscores"
        )
    return name


def _base_url(flags: "Flags", known: "Profiles", name: str) -> str:
    from postroom_client.settings import DEFAULT_BASE_URL

    before = known.find(name)
    chosen = flags.base_url or os.environ.get("POSTROOM_BASE_URL")
    return (chosen or (before.base_url if before else DEFAULT_BASE_URL)).rstrip("/")


def _key(flags: "Flags", base_url: str) -> str:
    if flags.api_key == "-":
        return sys.stdin.readline().strip()
    given = flags.api_key or os.environ.get("POSTROOM_API_KEY")
    if given:
        return given
    if not output.can_ask():
        raise typer.BadParameter("there is no terminal to ask on: pass --api-key, or --api-key - and stdin")
    answer: str = typer.prompt(f"API key for {base_url}", hide_input=True, err=True)
    return answer.strip()


def _only_inbox(client: "Client") -> str | None:
    page = client.list_inboxes(limit=2)
    return page.data[0].id if page.total == 1 else None


def _show_profiles(known: "Profiles") -> None:
    if not known.profiles:
        output.note("No profile yet. Create one: postroom login")
        return
    rows = [
        (name, profile.base_url, profile.inbox_id or "", "current" if name == known.current else "")
        for name, profile in known.profiles.items()
    ]
    output.print_human(output.table(("NAME", "SERVER", "DEFAULT INBOX", ""), rows))
