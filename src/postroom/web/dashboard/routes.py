"""The pages: a row names whose session a page takes, and the permission that it needs."""

from functools import partial

from postroom.accounts.permissions import MANAGING, NOTHING, READING, SENDING, WRITING
from postroom.web.dashboard import sign_in
from postroom.web.dashboard.forms import read_form
from postroom.web.dashboard.pages import frame, mail, message, people, start, thread
from postroom.web.routing import ACCOUNT, POD, Route

page = partial(Route, "GET")
change = partial(Route, "POST", read=read_form)

PAGES = (
    page("/app", start.show_home, POD, READING),
    page("/app/start", start.show_start, POD, READING),
    change("/app/start/test-mail", start.send_test_mail, POD, MANAGING),
    change("/app/start/key", start.create_agent_key, ACCOUNT, MANAGING),
    change("/app/inboxes", start.create_inbox, POD, MANAGING),
    page("/app/rail", frame.show_rail, POD, READING),
    change("/app/pause", frame.change_pause, POD, MANAGING),
    change("/app/sign-out", sign_in.sign_out, POD, NOTHING),
    page("/app/mail", mail.show_mail, POD, READING),
    change("/app/mail/marks", mail.mark, POD, WRITING),
    page("/app/mail/{thread_id}", thread.show_thread, POD, READING),
    change("/app/mail/{thread_id}/answer", message.answer, POD, WRITING),
    page("/app/messages/{message_id}", thread.show_message, POD, READING),
    page("/app/messages/{message_id}/html", message.show_html, POD, READING),
    page("/app/messages/{message_id}/raw", message.download_raw, POD, READING),
    change("/app/messages/{message_id}/retry", message.retry, POD, SENDING),
    change("/app/messages/{message_id}/cancel", message.cancel, POD, WRITING),
    change("/app/messages/{message_id}/suppress", message.suppress_sender, ACCOUNT, MANAGING),
    page("/app/sessions", people.list_sessions, POD, READING),
    change("/app/sessions/{session_id}/end", people.end_session, POD, MANAGING),
)
