"""Who is signed in, from where, and the button that ends it."""

from starlette.responses import Response

from postroom.accounts import sessions
from postroom.operations.people import sign_in
from postroom.web.dashboard import delayed_operations, undo
from postroom.web.dashboard.desk import Desk, go


async def list_sessions(desk: Desk) -> Response:
    found = await desk.read(sessions.list_within, desk.call.reach, desk.call.now())
    return await desk.show("people.html", "settings", title="Sessions", sessions=found)


async def end_others(desk: Desk) -> Response:
    ended = await desk.decide(sign_in.end_other_sessions)
    return go("/app/sessions", f"Signed out elsewhere: {ended} of your sessions ended.")


end_session = undo.delayed(
    delayed_operations.end_session, "/app/sessions", "The session ends in {seconds} seconds."
)
