"""The pages: a row names whose session a page takes, and the permission that it needs."""

from postroom.accounts.permissions import MANAGING, NOTHING, READING
from postroom.web.dashboard import sign_in
from postroom.web.dashboard.forms import read_form
from postroom.web.dashboard.pages import frame, home, people
from postroom.web.routing import POD, Route

PAGES = (
    Route("GET", "/app", home.show_home, POD, READING),
    Route("GET", "/app/rail", frame.show_rail, POD, READING),
    Route("POST", "/app/sign-out", sign_in.sign_out, POD, NOTHING),
    Route("GET", "/app/sessions", people.list_sessions, POD, READING),
    Route("POST", "/app/sessions/{session_id}/end", people.end_session, POD, MANAGING),
    Route("POST", "/app/pause", frame.change_pause, POD, MANAGING, read=read_form),
)
