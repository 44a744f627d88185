"""The table of plain commands by name: operation, description and output."""

from postroom_client.cli.plain.administration import SENDING_RULES, TENANTS
from postroom_client.cli.plain.calendar_rows import CALENDARS
from postroom_client.cli.plain.contact_rows import CONTACTS
from postroom_client.cli.plain.delivery import OUTSIDE
from postroom_client.cli.plain.mail import DRAFTS, INBOXES, MAILBOX, TEMPLATES

ROWS = {
    row.name: row
    for row in (
        *INBOXES,
        *DRAFTS,
        *TEMPLATES,
        *SENDING_RULES,
        *TENANTS,
        *MAILBOX,
        *CONTACTS,
        *CALENDARS,
        *OUTSIDE,
    )
}
