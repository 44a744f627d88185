"""The frame of every page: navigation with counts, and the button that pauses everything."""

from typing import Literal

from msgspec import Struct
from starlette.responses import Response

from postroom.fields import ScopeFilter
from postroom.operations import holds
from postroom.web.dashboard.forms import own_path
from postroom.web.dashboard.page_context import PageContext, go


class RailQuery(Struct, frozen=True):
    here: str = ""


class PauseForm(Struct, frozen=True):
    action: Literal["pause", "resume"]
    back: str = ""


async def show_rail(context: PageContext, query: RailQuery) -> Response:
    """Show only the navigation, with current counts."""
    return await context.show("rail.html", query.here)


async def change_pause(context: PageContext, body: PauseForm) -> Response:
    """Pauses or resumes everything in the person's scope."""
    if body.action == "pause":
        await context.run(holds.put_pause, query=ScopeFilter())
        return go(own_path(body.back), "Paused. No email is sent until you resume.")
    await context.run(holds.delete_pause, query=ScopeFilter())
    return go(own_path(body.back), "Resumed. Emails that are not held for another reason are sent now.")
