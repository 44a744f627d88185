"""The rows of the route table that are about people: users, who is told of what, and what they tell."""

from postroom import errors
from postroom.accounts.permissions import MANAGING, NOTHING
from postroom.operations.people import feedback, notifications, users
from postroom.web.api.events import webhooks as webhook_posts
from postroom.web.routing import ACCOUNT, SCOPED, Route

USER = (errors.UserExists,)
OLD_USER = (errors.LastOwner,)

ROUTES = (
    Route("POST", "/v1/users", users.create_user, ACCOUNT, MANAGING, 201, USER),
    Route("GET", "/v1/users", users.list_users, ACCOUNT, MANAGING),
    Route("GET", "/v1/users/{user_id}", users.get_user, ACCOUNT, MANAGING),
    Route("PATCH", "/v1/users/{user_id}", users.change_user, ACCOUNT, MANAGING, 200, OLD_USER),
    Route("DELETE", "/v1/users/{user_id}", users.delete_user, ACCOUNT, MANAGING, 204, OLD_USER),
    Route("POST", "/v1/users/{user_id}/invite", users.invite_user, ACCOUNT, MANAGING, 202),
    Route("GET", "/v1/notifications", notifications.get_notifications, ACCOUNT, MANAGING),
    Route(
        "PUT",
        "/v1/notifications",
        notifications.put_notifications,
        ACCOUNT,
        MANAGING,
        200,
        (errors.InvalidWebhookUrl,),
        prepare=webhook_posts.require_allowed_targets,
    ),
    Route("POST", "/v1/feedback", feedback.give_feedback, SCOPED, NOTHING, 201),
)
