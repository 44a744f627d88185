"""Passkeys of the signed-in person: added by the browser, named and removed."""

import msgspec
from msgspec import Struct
from starlette.responses import Response

from postroom.operations.people import passkeys as verbs
from postroom.processes import pools
from postroom.web.dashboard import undo
from postroom.web.dashboard.actions import decides
from postroom.web.dashboard.display.rendering import HEADERS
from postroom.web.dashboard.page_context import PageContext, go

PATH = "/app/settings/passkeys"


class NewPasskeyForm(Struct, frozen=True):
    credential: str
    name: str = ""


class PasskeyNameForm(Struct, frozen=True):
    name: str = ""


async def show_passkeys(context: PageContext) -> Response:
    resources = context.call.resources
    return await context.show(
        "passkeys.html",
        "settings",
        title="Passkeys",
        passkeys=await context.read(verbs.list_passkeys, context.call.caller),
        is_possible=verbs.relying_party(resources.config) is not None,
    )


async def offer(context: PageContext) -> Response:
    options = await context.decide(verbs.offer_adding, context.call.resources.config)
    return Response(msgspec.json.encode(options), media_type="application/json", headers=HEADERS)


async def add(context: PageContext, body: NewPasskeyForm) -> Response:
    """Add a passkey. The challenge is used up first, whatever the result."""
    party = verbs.require_party(context.call.resources.config)
    answer = verbs.read_answer(body.credential)
    await context.decide(verbs.take_adding, answer)
    new = await pools.ONCE.run(verbs.verify_new, answer, party)
    added = await context.decide(verbs.add_passkey, new, body.name)
    return go(PATH, f"You can now sign in with the passkey “{added.name}”.")


rename = decides(verbs.rename_passkey, PATH, "Saved.", PasskeyNameForm, lambda form: form.name)
remove = undo.delayed(
    verbs.remove_passkey,
    PATH,
    "Removing the passkey in {seconds} seconds. Delete it on your device too.",
)
