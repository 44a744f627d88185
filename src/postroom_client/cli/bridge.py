"""postroom bridge: hands events to a local endpoint or command, here or as a service."""

import os
import shlex
import signal
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postroom_client.cli import output
from postroom_client.cli.command import command
from postroom_client.cli.context import CommandContext
from postroom_client.cli.groups import GROUPS
from postroom_client.cli.safe_text import one_line
from postroom_client.cli.status import bridge_state

if TYPE_CHECKING:
    from postroom_client.bridge.files import BridgeSettings

app = GROUPS["bridge"]


def handling(
    forward_to: Annotated[
        str | None, typer.Option(metavar="URL", help="POST each event to this endpoint.")
    ] = None,
    token: Annotated[
        str | None, typer.Option(help="Sent as Authorization: Bearer; safer in POSTROOM_BRIDGE_TOKEN.")
    ] = None,
    command_line: Annotated[
        str | None, typer.Option("--command", help="Run this for each event, given on stdin.")
    ] = None,
    inbox_ids: Annotated[
        list[str] | None, typer.Option("--inbox-id", metavar="ID", help="Only of this inbox (repeatable).")
    ] = None,
    event_types: Annotated[
        list[str] | None, typer.Option("--event-type", metavar="KIND", help="Only of this kind (repeatable).")
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds the handler may take for an event.")] = 60,
    aside_after: Annotated[
        int, typer.Option(min=0, help="Set an event aside after this many failed attempts; 0: never.")
    ] = 0,
) -> "BridgeSettings | None":
    """Return the options of `run` and `install` as settings; None if no handler is given."""
    from postroom_client.bridge.files import BridgeSettings

    if forward_to and command_line:
        raise typer.BadParameter("--forward-to and --command exclude each other")
    if not forward_to and not command_line:
        return None
    return BridgeSettings(
        forward_to=forward_to,
        token=token or os.environ.get("POSTROOM_BRIDGE_TOKEN"),
        command=_words(command_line or ""),
        inbox_ids=inbox_ids or [],
        event_types=event_types or [],
        timeout_seconds=timeout,
        aside_after=aside_after,
    )


@command(app, "run", options=handling)
def run(
    context: CommandContext,
    from_start: Annotated[
        bool,
        typer.Option("--from-start", help="At the first start: begin with the oldest event the server has."),
    ] = False,
    **options: Any,
) -> None:
    """Run the bridge here; without options, as it was installed."""
    from postroom_client.bridge import files
    from postroom_client.bridge.bridge import Bridge, Wanted
    from postroom_client.bridge.handlers import make_handler

    settings = _require(handling(**options) or files.find_settings(context.settings.profile))
    wanted = Wanted(tuple(settings.inbox_ids), tuple(settings.event_types))
    bridge = Bridge(
        context.settings.profile, context.client, wanted, make_handler(settings), _note, settings.aside_after
    )
    signal.signal(signal.SIGTERM, _stop)
    bridge.run(from_start=from_start)


@command(app, "install", options=handling)
def install(context: CommandContext, **options: Any) -> None:
    """Run the bridge from now on, also after a crash or a reboot."""
    from postroom_client.bridge import files, install
    from postroom_client.bridge.handlers import make_handler

    settings = _require(handling(**options))
    make_handler(settings)
    _require_stored_key(context)
    profile = context.settings.profile
    supervisor = install.supervisor(profile)
    files.save(files.settings_path(profile), settings)
    supervisor.install()
    sentence = f"The bridge of profile {profile} is installed: {supervisor.path}"
    context.done({"installed": True, "profile": profile, "path": str(supervisor.path)}, sentence)


def _require(settings: "BridgeSettings | None") -> "BridgeSettings":
    if settings is None:
        raise typer.BadParameter("say where to send events: --forward-to URL or --command COMMAND")
    return settings


@command(app, "uninstall")
def uninstall(context: CommandContext) -> None:
    """Stop the bridge and forget its settings and position."""
    from postroom_client.bridge import files, install

    profile = context.settings.profile
    supervisor = install.supervisor(profile)
    if supervisor.path.exists():
        supervisor.uninstall()
    files.remove(profile)
    context.done({"installed": False, "profile": profile}, f"The bridge of profile {profile} is removed.")


@command(app, "status")
def status(context: CommandContext) -> None:
    """Show whether the bridge runs, its last event, and what it is stuck on."""
    report = survey(context.settings.profile)
    context.show_result(output.encode(report), report, _show)


@command(app, "skip")
def skip(context: CommandContext) -> None:
    """Set aside the event that the bridge is stuck on, and continue after it."""
    from postroom_client.bridge import files
    from postroom_client.bridge.files import BridgeFault

    profile = context.settings.profile
    place = files.find_place(profile)
    if place is None or place.failing is None:
        raise BridgeFault(f"The bridge of profile {profile} is not stuck.")
    event_id = place.failing.event_id
    files.ask_to_skip(profile, event_id)
    when = "now" if bridge_state(profile)["running"] else "if it fails again after the next start"
    sentence = f"{event_id} is set aside {when}: {files.aside_folder(profile)}"
    context.done({"eventId": event_id, "skipped": True, "profile": profile}, sentence)


def survey(profile: str) -> dict[str, Any]:
    from postroom_client.bridge import files

    place = files.find_place(profile)
    return {
        "profile": profile,
        **_service(profile),
        **bridge_state(profile),
        "lastEventId": place and place.last_event_id,
        "handledAt": place and place.handled_at,
        "failing": place and place.failing,
        "aside": [str(path) for path in files.list_aside(profile)],
    }


def _service(profile: str) -> dict[str, Any]:
    """Return whether its file exists, and its state in the system: a file alone starts nothing."""
    from postroom_client.bridge import install
    from postroom_client.bridge.files import BridgeFault

    is_written = False
    try:
        supervisor = install.supervisor(profile)
        is_written = supervisor.path.exists()
        state = supervisor.state() if is_written else None
    except BridgeFault as fault:
        state = fault.message
    return {"installed": is_written, "service": state}


def _words(command_line: str) -> list[str]:
    try:
        return shlex.split(command_line)
    except ValueError as error:
        raise typer.BadParameter(f"--command cannot be read: {error}") from None


def _require_stored_key(context: CommandContext) -> None:
    from postroom_client.bridge.files import BridgeFault

    if not context.is_from_profile:
        raise BridgeFault("The bridge takes its key from a profile. Create one first: postroom login")


def _show(report: dict[str, Any]) -> None:
    running = f"running (process {report['pid']})" if report["running"] else "not running"
    failing = report["failing"]
    pairs = [
        ("profile", report["profile"]),
        ("bridge", running),
        ("installed", "yes" if report["installed"] else "no: postroom bridge install"),
        *([("service", report["service"])] if report["service"] else []),
        ("last event", report["lastEventId"] or "none yet"),
        ("handed over", output.ago(report["handledAt"]) or "never"),
    ]
    if failing is not None:
        pairs.append(("stuck on", f"{failing.event_id}, {failing.attempts} attempts: {failing.reason}"))
        pairs.append(("", "skip it: postroom bridge skip"))
    if report["aside"]:
        pairs.append(("set aside", f"{len(report['aside'])}, the last in {report['aside'][-1]}"))
    output.print_human(output.record(pairs))


def _note(text: str) -> None:
    output.note(one_line(text))


def _stop(number: int, frame: FrameType | None) -> None:
    """End the running command with the bridge, at a service manager's request."""
    raise SystemExit(0)
