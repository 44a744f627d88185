"""Who is signed in, from where, and the button that ends it."""

from starlette.responses import Response

from postroom.accounts import sessions
from postroom.web.dashboard.desk import Desk, go


async def list_sessions(desk: Desk) -> Response:
    found = await desk.call.resources.db.read(sessions.list_within, desk.call.reach, desk.call.now())
    return await desk.show("people.html", "settings", title="Sessions", sessions=found)


async def end_session(desk: Desk, session_id: str) -> Response:
    await desk.call.resources.db.write(sessions.remove, desk.call.reach, session_id)
    return go("/app/sessions", "Session ended.")
