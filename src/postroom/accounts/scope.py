"""The scope of a key: a whole account, one pod of it, or one inbox."""

from msgspec import Struct


class Scope(Struct, frozen=True):
    account_id: str
    pod_id: str | None = None  # set: this pod alone
    inbox_id: str | None = None  # set: this inbox alone

    def covers(self, account_id: str, pod_id: str, inbox_id: str) -> bool:
        """Return whether an inbox, with its contents, is in scope."""
        return (
            self.account_id == account_id
            and self.pod_id in (None, pod_id)
            and self.inbox_id in (None, inbox_id)
        )

    def includes(self, other: "Scope") -> bool:
        """Return whether the whole other scope is within this one."""
        return (
            self.account_id == other.account_id
            and self.pod_id in (None, other.pod_id)
            and self.inbox_id in (None, other.inbox_id)
        )

    def covers_pod(self, pod_id: str) -> bool:
        return self.inbox_id is None and self.pod_id in (None, pod_id)

    @property
    def owner(self) -> tuple[str, str]:
        """The column and the id that limit it."""
        if self.inbox_id is not None:
            return "inbox_id", self.inbox_id
        return ("account_id", self.account_id) if self.pod_id is None else ("pod_id", self.pod_id)

    @property
    def owner_of_inboxes(self) -> tuple[str, str]:
        """The column of `inboxes` and the id that limit it."""
        return ("id", self.inbox_id) if self.inbox_id is not None else self.owner

    @property
    def is_account(self) -> bool:
        return self.pod_id is None and self.inbox_id is None


def default_pod(account_id: str) -> str:
    """Return the id of the pod where inboxes go by default."""
    return f"pod_{account_id[4:]}"
