"""By hand: how the clients call what the interface has, where that is not the same word."""

from tools.generate.description import Description, Operation, Shape, snake

# Methods of the clients, by operation.
METHODS = {
    "who_am_i": "me",
    "change_account": "update_account",
    "change_connection": "update_connection",
    "change_inbox": "update_inbox",
    "change_pod": "update_pod",
    "change_user": "update_user",
    "change_webhook": "update_webhook",
    "change_domain": "update_domain",
    "change_draft": "update_draft",
    "change_template": "update_template",
    "change_thread": "update_thread",
    "change_rule": "update_rule",
    "change_calendar": "update_calendar",
    "change_calendar_event": "update_calendar_event",
    "change_message": "update_message",
    "create_inbox_key": "create_api_key",
    "list_inbox_keys": "list_api_keys",
    "delete_inbox_key": "delete_api_key",
    "create_api_key": "create_account_key",
    "list_api_keys": "list_account_keys",
    "get_api_key": "get_key",
    "change_api_key": "update_key",
    "delete_api_key": "delete_key",
    "create_domain": "add_domain",
    "list_inbox_messages": "list_messages",
    "search_messages": "search_page",
    "send_message": "send",
    "put_pause": "pause",
    "delete_pause": "resume",
    "put_policy": "set_policy",
    "put_policy_mode": "set_policy_mode",
    "put_webhook": "set_webhook",
    "put_notifications": "set_notifications",
    "retry_failed_deliveries": "retry_failed_webhook_deliveries",
    "rotate_inbox_secret": "rotate_inbox_webhook_secret",
}
# Iterators over all pages, by operation; else `list_…` gives `iter_…`.
ITERATORS = {"search_messages": "search"}
# Made by hand, since it takes several steps: `wait`.
BY_HAND = {"wait_for_message"}

# Arguments that stand without their names, in this order; else those that are required.
POSITIONAL = {
    "create_api_key": ("name",),
    "create_inbox_key": ("inbox_id", "name"),
    "create_pod_key": ("pod_id", "name"),
    "add_draft_files": ("draft_id", "attachments"),
    "add_policy_rule": ("direction", "type", "value"),
    "put_policy_mode": ("direction", "mode"),
    "send_message": ("inbox_id",),
}
ARGUMENTS = {
    ("get_usage", "from"): "first",
    ("get_usage", "to"): "last",
    ("get_domain_reports", "from"): "first",
    ("list_calendar_events", "from"): "since",
    ("get_free_busy", "from"): "since",
    ("find_times", "from"): "since",
    ("get_domain_reports", "to"): "last",
}
# Seconds that an answer may take.
TIMEOUTS = {
    "get_raw_message": 120,
    "get_attachment": 120,
    "get_attachment_preview": 60,
    "verify_domain": 60,
    "rotate_dkim": 60,
    "get_domain_health": 60,
    "test_connection": 60,
}
# POST that does no more when it is asked twice.
REPEATABLE = {"add_suppression", "verify_domain"}

# Results, by the shapes of answers; two with one name are one result with the fields of both.
SHAPES = {
    "Approval": "ApprovalRules",
    "ChangedThread": "Thread",
    "CreatedApiKey": "ApiKey",
    "EventAttachment": "Attachment",
    "HeldMessage": "Approval",
    "InboxWebhookSecret": "InboxSecret",
    "Paused": "Pause",
    "Payload": "Event",
    "SendReceipt": "Sent",
    "ShownAttachment": "Attachment",
    "ShownCalendar": "Calendar",
    "ShownCalendarEvent": "CalendarEvent",
    "ShownAttempt": "WebhookAttempt",
    "ShownConnection": "Connection",
    "ShownDraft": "Draft",
    "ShownFile": "Attachment",
    "ShownHold": "Hold",
    "ShownPace": "ProviderPace",
    "ShownPolicy": "Policy",
    "ShownProvider": "ReceivingProvider",
    "ShownRecipient": "Recipient",
    "ShownRecord": "DnsRecord",
    "ShownResult": "SearchResult",
    "ShownRule": "PolicyRule",
    "ShownUsage": "UsageGroup",
    "ShownWarmUp": "WarmUp",
}
FIELDS = {
    ("EventMessage", "from"): "sender",
    ("Thread", "from"): "sender",
    ("Awaiting", "from"): "whom",
    ("Usage", "from"): "first",
    ("Usage", "to"): "last",
    ("DomainReports", "from"): "first",
    ("DomainReports", "to"): "last",
}
# Said by success itself, and no field of a result.
LEFT_OUT = {("Thread", "ok")}
# As it was written, and not a moment of its own.
AS_WRITTEN = {("Draft", "send_at")}
# What counts where a server leaves it out, if that is not empty.
DEFAULTS = {("Attachment", "url"): "", ("Me", "scope"): "account"}
# A result that can do more than hold its fields.
WITH_METHODS = {"Message": "Judged"}


def method_of(operation: Operation) -> str:
    return METHODS.get(operation.id, operation.id)


def iterator_of(operation: Operation) -> str:
    return ITERATORS.get(operation.id, method_of(operation).replace("list_", "iter_", 1))


def argument_of(operation: Operation, field: str) -> str:
    return ARGUMENTS.get((operation.id, field), snake(field))


def result_of(shape: str) -> str:
    return SHAPES.get(shape, shape)


def is_page(shape: Shape) -> bool:
    """A list of one page, of which there may be more behind `offset`."""
    return {"data", "total"} <= {each.name for each in shape.fields} <= {"data", "total", "truncated"}


def operations_of_clients(description: Description) -> list[Operation]:
    return [
        each for each in description.operations if each.path.startswith("/v1/") and each.id not in BY_HAND
    ]
