"""The ids in the audit log in words: who or what it was, and the page that shows it."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct, structs

from postroom.accounts import domains, keys, pods
from postroom.accounts.people import users
from postroom.accounts.scope import Scope
from postroom.errors import ApiError
from postroom.events import webhooks
from postroom.external_mailboxes import connections
from postroom.mailbox import documents, inboxes, messages, templates, threads
from postroom.web.call import Tx

WORDS = 80
OF_THE_ACCOUNT = ("/app/settings/keys", "/app/settings/pods", "/app/settings/people", "/app/webhooks")
NAMES = ("address", "displayName", "email", "name", "domain", "subject", "url", "host", "value")
KINDS = {
    "acc": "Account",
    "key": "API key",
    "inb": "Inbox",
    "pod": "Pod",
    "msg": "Message",
    "thr": "Thread",
    "dom": "Domain",
    "usr": "Person",
    "whk": "Webhook",
    "con": "Connection",
    "tpl": "Template",
    "whd": "Delivery",
    "ses": "Session",
    "psk": "Passkey",
    "psh": "Device",
    "fbk": "Feedback",
}


class AuditTarget(Struct, frozen=True):
    label: str
    path: str = ""  # of its page; empty where there is none
    id: str = ""  # to copy; empty if the target is a plain word, such as an address


def describe(tx: Tx, scope: Scope, entries: list[dict[str, Any]]) -> list[AuditTarget]:
    """Return one target for each entry; a deleted target is described from the entry itself."""
    known: dict[str, AuditTarget | None] = {}
    for each in entries:
        target = each["target"]
        if target not in known:
            known[target] = find(tx, scope, target)
    found = [known[each["target"]] or remembered(each) for each in entries]
    return found if scope.is_account else [within_pod(target) for target in found]


def within_pod(target: AuditTarget) -> AuditTarget:
    """Removes links to pages that need the whole account."""
    return structs.replace(target, path="") if target.path.startswith(OF_THE_ACCOUNT) else target


def find(tx: Tx, scope: Scope, target: str) -> AuditTarget | None:
    look_up = LOOK_UPS.get(target[:3]) if target[3:4] == "_" else None
    if look_up is None:
        return None
    try:
        return look_up(tx, scope, target)
    except ApiError:
        return None


def remembered(entry: dict[str, Any]) -> AuditTarget:
    target = entry["target"]
    kind = KINDS.get(target[:3]) if target[3:4] == "_" else None
    if kind is None:
        return AuditTarget(target)
    for said in (entry["after"], entry["before"]):
        named = [said[name] for name in NAMES if said.get(name)] if isinstance(said, dict) else []
        if named and isinstance(named[0], str):
            return AuditTarget(named[0][:WORDS], id=target)
    return AuditTarget(kind, id=target)


def of_account(tx: Tx, scope: Scope, target: str) -> AuditTarget | None:
    return AuditTarget("Account", "/app/settings", target) if target == scope.account_id else None


def of_key(tx: Tx, scope: Scope, target: str) -> AuditTarget:
    key = keys.get(tx, scope.account_id, target)
    return AuditTarget(key.name or "API key without a name", f"/app/settings/keys/{target}", target)


def of_inbox(tx: Tx, scope: Scope, target: str) -> AuditTarget:
    return AuditTarget(inboxes.get(tx, scope, target).address, f"/app/inboxes/{target}", target)


def of_pod(tx: Tx, scope: Scope, target: str) -> AuditTarget:
    pod = pods.get(tx, scope, target)
    name = pod.name or pod.client_id or ("Default pod" if pod.is_default else "Pod")
    return AuditTarget(name, f"/app/settings/pods/{target}", target)


def of_message(tx: Tx, scope: Scope, target: str) -> AuditTarget:
    written = documents.decode(messages.get_outline(tx, scope, target).document)
    return AuditTarget((written.subject or "(no subject)")[:WORDS], f"/app/messages/{target}", target)


def of_thread(tx: Tx, scope: Scope, target: str) -> AuditTarget:
    thread = threads.get(tx, scope, target)
    return AuditTarget((thread.subject or "(no subject)")[:WORDS], f"/app/mail/{target}", target)


def of_domain(tx: Tx, scope: Scope, target: str) -> AuditTarget:
    return AuditTarget(domains.get(tx, scope, target).name, "/app/settings/domains", target)


def of_user(tx: Tx, scope: Scope, target: str) -> AuditTarget:
    user = users.get(tx, scope.account_id, target)
    return AuditTarget(user.name or user.email, f"/app/settings/people/{target}", target)


def of_webhook(tx: Tx, scope: Scope, target: str) -> AuditTarget | None:
    webhook = webhooks.find(tx, target)
    if webhook is None or webhook.account_id != scope.account_id:
        return None
    return AuditTarget(webhook.url[:WORDS], "/app/webhooks", target)


def of_connection(tx: Tx, scope: Scope, target: str) -> AuditTarget:
    connection = connections.get(tx, scope, target)
    return AuditTarget(connection.kind, "", target)


def of_template(tx: Tx, scope: Scope, target: str) -> AuditTarget:
    return AuditTarget(templates.get(tx, scope, target).name, f"/app/settings/templates/{target}", target)


LOOK_UPS: dict[str, Callable[[Tx, Scope, str], AuditTarget | None]] = {
    "acc": of_account,
    "key": of_key,
    "inb": of_inbox,
    "pod": of_pod,
    "msg": of_message,
    "thr": of_thread,
    "dom": of_domain,
    "usr": of_user,
    "whk": of_webhook,
    "con": of_connection,
    "tpl": of_template,
}
