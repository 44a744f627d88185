"""Who is signed in, from where, and the button that ends it."""

from starlette.responses import Response

from postroom.accounts import sessions
from postroom.web.dashboard import delayed_operations, undo
from postroom.web.dashboard.desk import Desk


async def list_sessions(desk: Desk) -> Response:
    found = await desk.call.resources.db.read(sessions.list_within, desk.call.reach, desk.call.now())
    return await desk.show("people.html", "settings", title="Sessions", sessions=found)


async def end_session(desk: Desk, session_id: str) -> Response:
    said = f"The session ends in {undo.SECONDS} seconds."
    return await undo.delay(
        desk, delayed_operations.end_session, "/app/sessions", said, session_id=session_id
    )
