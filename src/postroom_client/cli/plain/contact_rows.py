"""The table of plain commands about contacts, and the jobs that erase them."""

from postroom_client.cli.mailbox import contacts
from postroom_client.cli.plain.rows import Plain

JOB = ("id", "state", "done", "total", ("result", contacts.result_of), "finished finished_at")

CONTACTS = (
    Plain(
        "contacts list",
        "list_contacts",
        "List who exchanged email with your inboxes, by address.",
        columns=(
            "address",
            "name",
            "last seen last_seen_at",
            "received",
            "sent",
            "threads",
            "known is_known",
        ),
        empty="No contact found.",
    ),
    Plain(
        "contacts get",
        "get_contact",
        "Show what is known of one address.",
        fields=(
            *("address", "name", "first seen first_seen_at", "last seen last_seen_at", "received", "sent"),
            *("threads", "passed DMARC auth_passed", "failed DMARC auth_failed"),
            *("suspicious verdicts.suspicious", "malicious verdicts.malicious"),
            *("known is_known", "suppressed"),
        ),
    ),
    Plain(
        "contacts erase",
        "erase_contact",
        "Erase a contact with all its email; prints the job.",
        fields=("job job_id",),
        then=contacts.name_job,
        confirm="Erase {address} and all email with it?",
    ),
    Plain("jobs get", "get_job", "Show the progress of an erasure.", fields=JOB),
    Plain("jobs confirm", "confirm_job", "Confirm an erasure that another person asked for.", fields=JOB),
    Plain("jobs cancel", "cancel_job", "Cancel an erasure that waits for a second person.", fields=JOB),
)
