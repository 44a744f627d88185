"""The route table. Everything under /v1 needs a key; SCOPED routes also take a key of one inbox."""

from postroom import errors
from postroom.web import api, public
from postroom.web.routing import ACCOUNT, PUBLIC, SCOPED, Route

NEW_INBOX = (errors.InvalidMailboxName, errors.InvalidDomain, errors.AddressTaken)
NEW_KEY = (errors.ApiKeyLimitReached,)

ROUTES = (
    Route("GET", "/v1/me", api.who_am_i, SCOPED),
    Route("POST", "/v1/inboxes", api.create_inbox, ACCOUNT, 201, NEW_INBOX),
    Route("GET", "/v1/inboxes", api.list_inboxes, ACCOUNT),
    Route("GET", "/v1/inboxes/{inbox_id}", api.get_inbox, SCOPED),
    Route("PATCH", "/v1/inboxes/{inbox_id}", api.change_inbox, ACCOUNT),
    Route("DELETE", "/v1/inboxes/{inbox_id}", api.delete_inbox, ACCOUNT, 204),
    Route("POST", "/v1/inboxes/{inbox_id}/api-keys", api.create_inbox_key, ACCOUNT, 201, NEW_KEY),
    Route("GET", "/v1/inboxes/{inbox_id}/api-keys", api.list_inbox_keys, ACCOUNT),
    Route("DELETE", "/v1/inboxes/{inbox_id}/api-keys/{key_id}", api.delete_inbox_key, ACCOUNT, 204),
    Route("GET", "/health", public.health, PUBLIC),
    Route("GET", "/ready", public.ready, PUBLIC, 200, (errors.Unavailable,)),
    Route("GET", "/metrics", public.metrics, PUBLIC),
    Route("GET", "/openapi.json", public.openapi, PUBLIC),
    Route("GET", "/docs", public.docs, PUBLIC),
    Route("GET", "/docs/{file}", public.docs_file, PUBLIC),
)
