"""The first page: the way to the first mail, or straight to the mail."""

from starlette.responses import Response

from postroom.web.dashboard.desk import Desk


async def show_home(desk: Desk) -> Response:
    return await desk.show("home.html", "home", title="Welcome")
