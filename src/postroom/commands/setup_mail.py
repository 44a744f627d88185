"""The end of `postroom setup`: a key, the first owner, the first inbox, and an email that really leaves."""

import json
import os
from collections.abc import Iterator

from postroom.host_setup.systemd import Service
from postroom_client import profiles
from postroom_client.cli.doctor_checks import Finding
from postroom_client.cli.outward.test_email import SUBJECT, TEXT, to_finding, wait_until_settled
from postroom_client.client import Client
from postroom_client.errors import PostroomError
from postroom_client.transport.exchange import Patience

ACCOUNT = "default"
KEY_NAME = "postroom setup"
SEARCHED_MESSAGES = 100


class FirstMail:
    """`changed` names what had to be made."""

    def __init__(self, service: Service, base_url: str, changed: list[str]) -> None:
        self._service, self._base_url, self._changed = service, base_url, changed

    def open(self, host: str, owner: str, inbox_name: str, may_send: bool) -> Iterator[Finding]:
        patience = Patience(attempts=3, longest_wait_seconds=5)
        with Client(self._find_key(), self._base_url, patience=patience) as client:
            yield self._make_owner(client, owner)
            inbox = f"{inbox_name}@{host}"
            yield self._make_inbox(client, inbox, inbox_name)
            if may_send:
                yield self._send(client, inbox, owner)

    def _find_key(self) -> str:
        """Return a key that this server takes: the environment's, the profile's, or a new one."""
        known = [os.environ.get("POSTROOM_API_KEY", "")]
        stored = profiles.load().profiles.values()
        known += [each.api_key for each in stored if each.base_url == self._base_url]
        for key in filter(None, known):
            if self._is_valid(key):
                return key
        made = self._service.run("keys", "create", "--account", ACCOUNT, "--name", KEY_NAME, "--json")
        key = str(json.loads(made)["key"])
        self._changed.append("API key")
        profiles.save_local(self._base_url, key)
        return key

    def _is_valid(self, key: str) -> bool:
        try:
            with Client(key, self._base_url) as client:
                return client.me().scope == "account"
        except PostroomError:
            return False

    def _make_owner(self, client: Client, owner: str) -> Finding:
        for user in client.iter_users():
            if user.email.lower() == owner.lower():
                return Finding("owner", "pass", f"{user.email} ({user.role})")
        client.create_user(owner, "owner")
        self._changed.append("owner")
        link = self._service.run("login-link", "--user", owner).strip()
        return Finding("owner", "pass", owner, f"Sign in, once: {link}")

    def _make_inbox(self, client: Client, inbox: str, name: str) -> Finding:
        try:
            client.get_inbox(inbox)
        except PostroomError as error:
            if error.code != "not_found":
                raise
            client.create_inbox(name)
            self._changed.append("inbox")
        return Finding("inbox", "pass", inbox)

    def _send(self, client: Client, inbox: str, owner: str) -> Finding:
        """Send an email, unless it went before."""
        for message in client.list_messages(inbox, direction="outbound", limit=SEARCHED_MESSAGES).data:
            if message.subject == SUBJECT and owner in message.header_to and message.status != "failed":
                return to_finding(wait_until_settled(client, message.id))
        sent = client.send(inbox, to=owner, subject=SUBJECT, body=TEXT)
        self._changed.append("test email")
        return to_finding(wait_until_settled(client, sent.id))
