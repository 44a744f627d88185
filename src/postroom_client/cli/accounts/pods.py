"""postroom pods …"""

from typing import TYPE_CHECKING, Annotated

import typer

from postroom_client.cli import output
from postroom_client.cli.command import Limit, Offset, command, group
from postroom_client.cli.desk import Desk

if TYPE_CHECKING:
    from postroom_client.results import Page, Pod

app = group("Tenants of the account, each with inboxes, domains and keys of its own.")

PodArgument = Annotated[
    str, typer.Argument(help="Id of the pod, pod_…, or its clientId.", show_default=False)
]


@command(app, "create")
def create(
    desk: Desk,
    name: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    client_id: Annotated[str | None, typer.Option(help="An id of your own, unique.")] = None,
) -> None:
    """Create a pod."""
    from postroom_client.calls import calls

    desk.show(calls.create_pod(client_id=client_id, name=name), _show)


@command(app, "list")
def list_all(desk: Desk, limit: Limit = 50, offset: Offset = 0) -> None:
    """List the pods."""
    from postroom_client.calls import calls

    desk.show(calls.list_pods(limit=limit, offset=offset), _show_page)


@command(app, "show")
def show(desk: Desk, pod_id: PodArgument) -> None:
    """Show a pod."""
    from postroom_client.calls import calls

    desk.show(calls.get_pod(pod_id), _show)


@command(app, "rename")
def rename(
    desk: Desk, pod_id: PodArgument, name: Annotated[str, typer.Argument(help="The new name.")]
) -> None:
    """Give a pod another name."""
    from postroom_client.calls import calls

    desk.show(calls.update_pod(pod_id, name=name), _show)


@command(app, "delete")
def delete(
    desk: Desk,
    pod_id: PodArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a pod that holds no inbox and no domain."""
    from postroom_client.calls import calls

    output.confirm(f"Delete the pod {pod_id} and its keys?", yes=yes)
    desk.ask(calls.delete_pod(pod_id))
    desk.done({"id": pod_id, "deleted": True}, f"{pod_id} is gone.")


def _show(pod: "Pod") -> None:
    pairs = [("id", pod.id), ("client id", pod.client_id or ""), ("name", pod.name or "")]
    output.print_human(output.record([(name, value) for name, value in pairs if value]))


def _show_page(page: "Page[Pod]") -> None:
    rows = [
        (
            pod.id,
            pod.client_id or "",
            pod.name or ("default" if pod.is_default else ""),
            output.ago(pod.created_at),
        )
        for pod in page.data
    ]
    output.print_human(output.table(("ID", "CLIENT ID", "NAME", "CREATED"), rows))
    output.note_rest(page)
