"""The groups of operations, in the order in which a new user needs them: each is the noun of its paths."""

GROUPS = {
    "Email": {
        "inboxes": "Addresses that receive email, and sending from them.",
        "messages": "Emails received and sent.",
        "threads": "Conversations.",
        "search": "Finding email.",
        "attachments": "Files of messages.",
        "drafts": "Emails that are being written.",
        "templates": "Texts with fields, for writing emails.",
        "uploads": "Files that are sent before they are attached.",
        "contacts": "People who exchanged email with your inboxes.",
    },
    "Decisions": {
        "approvals": "Emails that wait for approval.",
        "pause": "Stopping all sending for a while.",
        "policy": "Who may write, and who may be written to.",
        "rules": "What is done with email that comes in.",
        "junk": "How junk is recognised.",
        "suppressions": "Addresses that get no more email.",
    },
    "Events": {
        "events": "What has happened.",
        "webhook": "Events by HTTP.",
        "webhooks": "Several endpoints, each for some of the events.",
        "notifications": "Targets that are notified when something waits.",
        "briefing": "What came, waits, is overdue, failed, and is on today.",
    },
    "Calendar": {
        "calendars": "Calendars of inboxes.",
        "calendar-events": "Events and series.",
        "free-busy": "When inboxes are busy.",
        "find-times": "Times at which several inboxes are free.",
    },
    "Account": {
        "me": "Who a key is.",
        "account": "The account itself.",
        "api-keys": "Keys of the account.",
        "pods": "Tenants of the account.",
        "users": "People of the account, with their roles.",
        "jobs": "Erasures of contacts.",
        "usage": "What was used.",
        "audit": "Who changed what.",
    },
    "Delivery": {
        "domains": "Your domains.",
        "deliverability": "How email fares at the providers that receive it.",
        "connections": "Mailboxes elsewhere and services that bring email in.",
    },
    "Server": {
        "server": "The server itself.",
        "feedback": "Feedback for the operator.",
    },
}
TAGS = {name: about for group in GROUPS.values() for name, about in group.items()}
