"""The table of plain commands about mail: inboxes, drafts, threads, messages, files."""

from postroom_client.cli.accounts import shown
from postroom_client.cli.mailbox import attachments, inbox, messages, threads
from postroom_client.cli.outward import drafts
from postroom_client.cli.outward.send import SEND_NAMES, show_sent
from postroom_client.cli.plain.rows import Plain

INBOXES = (
    Plain(
        "inbox create",
        "create_inbox",
        "Create an inbox. The first one becomes the default.",
        show=inbox.show_inbox,
        flags={"default": "Make it the default inbox."},
        then=inbox.use_first,
    ),
    Plain("inbox list", "list_inboxes", "List the inboxes, newest first.", show=inbox.show_inboxes),
    Plain("inbox get", "get_inbox", "Show an inbox.", show=inbox.show_inbox),
    Plain("inbox update", "update_inbox", "Change an inbox.", show=inbox.show_inbox),
    Plain(
        "inbox delete",
        "delete_inbox",
        "Delete an inbox with all its mail.",
        confirm="Delete {inbox_id} and all its mail?",
        done="{inbox_id} is deleted.",
        then=inbox.forget_default,
    ),
    Plain(
        "inbox keys create",
        "create_api_key",
        "Create a key and print it, once.",
        fields=shown.TOKEN,
        note=shown.KEEP_TOKEN,
    ),
    Plain(
        "inbox keys list",
        "list_api_keys",
        "List the keys of an inbox, oldest first.",
        columns=("id", "name", ("key", shown.key_shown), ("last used", shown.last_used)),
        empty="No key yet. Create one: postroom inbox keys create INBOX_ID --name NAME",
    ),
    Plain(
        "inbox keys revoke",
        "delete_api_key",
        "Revoke a key of an inbox at once.",
        done="{key_id} is revoked.",
    ),
)

DRAFTS = (
    Plain(
        "drafts create",
        "create_draft",
        "Begin a mail; any field may still be missing.",
        show=drafts.show_draft,
        arguments=(),
        names=SEND_NAMES,
    ),
    Plain(
        "drafts list",
        "list_drafts",
        "List the drafts of an inbox, newest first.",
        columns=("id", "changed updated_at", "to", "subject"),
        empty="No drafts here. Create one: postroom drafts create --to ADDRESS --subject TEXT --body TEXT",
        arguments=(),
    ),
    Plain("drafts show", "get_draft", "Show a draft.", show=drafts.show_draft),
    Plain(
        "drafts change",
        "update_draft",
        "Change the given fields of a draft.",
        show=drafts.show_draft,
        names=SEND_NAMES,
    ),
    Plain(
        "drafts attach",
        "add_draft_files",
        "Attach files to a draft.",
        show=drafts.show_draft,
        arguments=("draft_id", "attachments"),
    ),
    Plain(
        "drafts detach",
        "delete_draft_file",
        "Remove a file from a draft.",
        done="{filename} is removed.",
    ),
    Plain("drafts send", "send_draft", "Send a draft; it is then deleted.", show=show_sent),
    Plain("drafts delete", "delete_draft", "Delete a draft.", done="{draft_id} is removed."),
)

TEMPLATES = (
    Plain(
        "templates create",
        "create_template",
        "Create a template; {{name}} in its texts is where a field goes.",
        show=drafts.show_template,
        arguments=("name",),
    ),
    Plain(
        "templates list",
        "list_templates",
        "List templates, newest first.",
        columns=("id", "name", "fields", "subject"),
        empty="No templates yet. Create one: postroom templates create NAME --body TEXT",
    ),
    Plain("templates show", "get_template", "Show a template.", show=drafts.show_template),
    Plain("templates change", "update_template", "Change a template.", show=drafts.show_template),
    Plain(
        "templates delete",
        "delete_template",
        "Delete a template; what was written from it stays.",
        done="{template_id} is deleted.",
    ),
)

MAILBOX = (
    Plain(
        "threads get",
        "list_thread_messages",
        "Show the messages of a thread, oldest first.",
        show=threads.show_conversation,
        options=("limit", "offset"),
    ),
    Plain(
        "threads label",
        "update_thread",
        "Add labels to a thread, and remove some.",
        show=threads.show_thread,
        options=("add_labels", "remove_labels"),
        names={"add_labels": "add", "remove_labels": "remove"},
    ),
    Plain(
        "threads read",
        "update_thread",
        "Mark a thread as read.",
        show=threads.show_thread,
        options=(),
        fixed={"is_read": True},
    ),
    Plain(
        "threads unread",
        "update_thread",
        "Mark a thread as unread.",
        show=threads.show_thread,
        options=(),
        fixed={"is_read": False},
    ),
    Plain(
        "threads delete",
        "delete_thread",
        "Delete a thread with its messages; what has not left never does.",
        confirm="Delete {thread_id} and its messages?",
        done="{thread_id} is deleted.",
    ),
    Plain(
        "messages list",
        "list_messages",
        "List the messages of an inbox across its threads, newest first.",
        columns=(
            "id",
            ("", messages.direction),
            "status",
            "when created_at",
            ("with", messages.other_side),
            "subject",
        ),
        empty="No message here. Send one: postroom send --to ADDRESS --subject TEXT --body TEXT",
        arguments=(),
    ),
    Plain("messages get", "get_message", "Show a message.", show=messages.show_message),
    Plain(
        "messages respond",
        "respond_to_invitation",
        "Answer a message's invitation; the organizer gets your answer by mail.",
        show=show_sent,
    ),
    Plain(
        "messages redirect",
        "redirect_message",
        "Redirect a mail unchanged, still from its author.",
        show=show_sent,
    ),
    Plain("messages retry", "retry_message", "Deliver again, now.", show=messages.show_message),
    Plain(
        "messages cancel",
        "cancel_message",
        "Cancel the deliveries that still wait.",
        show=messages.show_message,
    ),
    Plain(
        "messages label",
        "update_message",
        "Add labels to one message, and remove some.",
        show=messages.show_message,
        options=("add_labels", "remove_labels"),
        names={"add_labels": "add", "remove_labels": "remove"},
    ),
    Plain(
        "messages reschedule",
        "update_message",
        "Reschedule a message.",
        show=messages.show_message,
        arguments=("message_id", "send_at"),
        options=(),
    ),
    Plain(
        "messages release",
        "release_message",
        "Release what a policy stopped, as if it had just arrived.",
        show=messages.show_message,
    ),
    Plain(
        "messages delete",
        "delete_message",
        "Delete a message; what has not left never does.",
        confirm="Delete {message_id}?",
        done="{message_id} is deleted.",
    ),
    Plain(
        "attachments link",
        "create_download_link",
        "Print a link that gives an attachment once, without a key, for 15 minutes.",
        fields=("url", "expires_at"),
    ),
    Plain(
        "attachments text",
        "get_attachment_text",
        "Print the text found in an attachment.",
        show=attachments.show_text,
    ),
)
