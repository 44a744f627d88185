"""Users with their roles and pods, the pod that a user works in, and sessions."""

from msgspec import Struct
from starlette.responses import Response

from postroom.accounts import pods, sessions
from postroom.accounts.people import users as nouns
from postroom.accounts.pods import Pod
from postroom.accounts.scope import Scope
from postroom.operations.people import sign_in, users
from postroom.outward.notices import system_emails
from postroom.outward.notices.system_emails import SystemEmail
from postroom.web.call import Tx
from postroom.web.dashboard import undo
from postroom.web.dashboard.actions import decides, runs
from postroom.web.dashboard.page_context import PageContext, go
from postroom.web.dashboard.paging import OffsetQuery

PATH = "/app/settings/people"
PODS_SHOWN = 100


class UserForm(Struct, rename="camel", frozen=True):
    name: str = ""
    role: str = nouns.VIEWER
    pod_ids: list[str] = []


class InvitationForm(UserForm, rename="camel", frozen=True):
    email: str = ""


class PodChoiceForm(Struct, rename="camel", frozen=True):
    pod_id: str = ""


async def show_people(context: PageContext, query: OffsetQuery) -> Response:
    page = await context.ask(users.list_users, query=query.to_page())
    captured, all_pods = await context.read(read_beside, context)
    return await context.show(
        "users.html",
        "settings",
        title="People",
        users=page["data"],
        emails=captured,
        pods={
            pod.id: pod.name or pod.client_id or ("Default pod" if pod.is_default else pod.id)
            for pod in all_pods
        },
        roles=offered_roles(context),
        **query.of(page["total"]),
    )


def offered_roles(context: PageContext) -> list[str]:
    is_owner = context.call.caller.role in (None, nouns.OWNER)
    return [role for role in nouns.ROLES if role != nouns.OWNER or is_owner]


def read_beside(tx: Tx, context: PageContext) -> tuple[list[SystemEmail], list[Pod]]:
    """Return captured emails of the server, except those that would give the reader more rights."""
    account_id = context.call.account_id
    kept = system_emails.list_captured(tx, account_id)
    found = {email.user_id: nouns.find(tx, email.user_id or "") for email in kept}
    may_all = nouns.is_like_owner(tx, context.call.caller)
    shown = [
        email
        for email in kept
        if (user := found[email.user_id]) is not None and (may_all or user.role != nouns.OWNER)
    ]
    return shown, pods.list_within(tx, Scope(account_id), PODS_SHOWN, 0)[0]


def read_role(word: str) -> users.Role:
    nouns.require_role(word)
    return word  # type: ignore[return-value]


invite = runs(
    users.create_user,
    PATH,
    "{body.email} is invited.",
    InvitationForm,
    lambda form: {"body": users.NewUser(form.email, read_role(form.role), form.pod_ids, form.name)},
)
invite_again = runs(users.invite_user, PATH, "Invitation sent. The earlier link no longer works.")


async def show_user(context: PageContext, user_id: str) -> Response:
    user = await context.ask(users.get_user, user_id=user_id)
    _, all_pods = await context.read(read_beside, context)
    return await context.show(
        "user.html",
        "settings",
        title=user["name"] or user["email"],
        user=user,
        pods={pod.id: pod.name or pod.client_id or pod.id for pod in all_pods},
        roles=offered_roles(context),
    )


change = runs(
    users.change_user,
    f"{PATH}/{{user_id}}",
    "Saved.",
    UserForm,
    lambda form: {"body": users.UserChange(read_role(form.role), form.pod_ids, form.name)},
)
remove = undo.delayed(
    users.delete_user,
    PATH,
    "Removing the person in {seconds} seconds, with the API keys and apps they allowed.",
)


async def choose_pod(context: PageContext, body: PodChoiceForm) -> Response:
    """Choose a pod, for users with several."""
    await undo.do_all_now(context)
    await context.decide(sign_in.choose_pod, body.pod_id)
    return go("/app")


async def list_sessions(context: PageContext) -> Response:
    found = await context.read(sessions.list_within, context.call.scope, context.call.now())
    return await context.show("people.html", "settings", title="Sessions", sessions=found)


end_others = decides(sign_in.end_other_sessions, "/app/sessions", "Signed out of {made} other sessions.")


end_session = undo.delayed(sign_in.end_session, "/app/sessions", "Ending the session in {seconds} seconds.")
