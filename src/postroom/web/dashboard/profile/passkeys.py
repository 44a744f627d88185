"""Passkeys of whoever is signed in: added by the browser, named and removed."""

import msgspec
from msgspec import Struct
from starlette.responses import Response

from postroom.operations.people import passkeys as verbs
from postroom.processes import pools
from postroom.web.dashboard import undo
from postroom.web.dashboard.desk import Desk, go
from postroom.web.dashboard.display.rendering import HEADERS

PATH = "/app/settings/passkeys"


class NewPasskeyForm(Struct, frozen=True):
    credential: str
    name: str = ""


class PasskeyNameForm(Struct, frozen=True):
    name: str = ""


async def show_passkeys(desk: Desk) -> Response:
    resources = desk.call.resources
    return await desk.show(
        "passkeys.html",
        "settings",
        title="Passkeys",
        passkeys=await resources.db.read(verbs.list_passkeys, desk.call.caller),
        is_possible=verbs.relying_party(resources.config) is not None,
    )


async def offer(desk: Desk) -> Response:
    resources = desk.call.resources
    caller, now = desk.call.decider, desk.call.now()
    options = await resources.db.write(verbs.offer_adding, caller, resources.config, now)
    return Response(msgspec.json.encode(options), media_type="application/json", headers=HEADERS)


async def add(desk: Desk, body: NewPasskeyForm) -> Response:
    """The challenge is used up first, whatever is found out about the rest."""
    resources, caller = desk.call.resources, desk.call.decider
    party = verbs.require_party(resources.config)
    answer = verbs.read_answer(body.credential)
    await resources.db.write(verbs.take_adding, caller, answer, desk.call.now())
    new = await pools.ONCE.run(verbs.verify_new, answer, party)
    added = await resources.db.write(verbs.add_passkey, caller, new, body.name, desk.call.now())
    return go(PATH, f"The passkey “{added.name}” signs you in from now on.")


async def rename(desk: Desk, passkey_id: str, body: PasskeyNameForm) -> Response:
    caller, now = desk.call.decider, desk.call.now()
    await desk.call.resources.db.write(verbs.rename_passkey, caller, passkey_id, body.name, now)
    return go(PATH, "Kept.")


async def remove(desk: Desk, passkey_id: str) -> Response:
    said = (
        f"In {undo.SECONDS} seconds the passkey signs nobody in any more. Delete it on your device as well."
    )
    return await undo.delay(desk, verbs.remove_passkey, PATH, said, passkey_id=passkey_id)
