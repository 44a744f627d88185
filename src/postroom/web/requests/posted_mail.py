"""The URL to which a mail service posts: the secret in it replaces a key."""

from starlette.requests import Request
from starlette.responses import Response

from postroom import limits
from postroom.errors import MethodNotAllowed, NotFound
from postroom.external_mailboxes import connections
from postroom.external_mailboxes.posts import PostIntake
from postroom.external_mailboxes.providers.post import Post
from postroom.resources import Resources
from postroom.web.requests.request_body import read_bytes

PREFIX = connections.POSTS_PATH
POST_SECONDS = 120.0


async def take_post(resources: Resources, intake: PostIntake, request: Request) -> Response:
    """Take a post. Without the right secret no body is read. 200 means that its content is durable."""
    if request.method != "POST":
        raise MethodNotAllowed("Mail services POST to this URL.", allow=["POST"])
    token = request.scope["path"].removeprefix(PREFIX).removesuffix("/mime")
    connection = await resources.db.read(connections.find_by_token, token)
    if connection is None:
        raise NotFound("No connection has this URL. Copy the postUrl of the connection.")
    body = await read_bytes(request, limits.FOREIGN_EMAIL_BYTES, POST_SECONDS)
    headers = {name.lower(): value for name, value in reversed(request.headers.items())}
    post = Post(headers, dict(request.query_params), body, resources.now())
    await intake.take(connection, post)
    return Response(b'{"ok":true}', media_type="application/json")
