"""postroom pause, postroom resume."""

from typing import TYPE_CHECKING, Annotated

import typer

from postroom_client.cli import output
from postroom_client.cli.command import OfInbox, OfPod, command
from postroom_client.cli.desk import Desk

if TYPE_CHECKING:
    from postroom_client.results import Pause


def pause(
    desk: Desk,
    inbox_id: OfInbox = None,
    pod_id: OfPod = None,
    show: Annotated[bool, typer.Option("--show", help="Change nothing; say whether it is paused.")] = False,
) -> None:
    """Hold every send, new and waiting: of all that the key reaches, of a pod or of an inbox."""
    from postroom_client.calls import calls

    call = calls.get_pause if show else calls.pause
    desk.show(call(inbox_id=inbox_id, pod_id=pod_id), _show)


def resume(desk: Desk, inbox_id: OfInbox = None, pod_id: OfPod = None) -> None:
    """End a pause; what nothing else holds goes."""
    from postroom_client.calls import calls

    desk.show(calls.resume(inbox_id=inbox_id, pod_id=pod_id), _show)


def _show(found: "Pause") -> None:
    if not found.paused:
        output.print_human(output.record([("sending", "not paused")]))
        return
    by = "" if found.by is None else found.by.name or found.by.id
    output.print_human(output.record([("sending", "paused"), ("since", output.ago(found.since)), ("by", by)]))
    output.note("End it: postroom resume")


def add_to(app: typer.Typer) -> None:
    command(app, "pause")(pause)
    command(app, "resume")(resume)
