"""The table of plain commands about accounts, keys and rules."""

from postroom_client.calls.operations import OPERATIONS
from postroom_client.calls.parameters import Parameter
from postroom_client.cli.accounts import shown
from postroom_client.cli.mailbox import rules
from postroom_client.cli.outward import approvals
from postroom_client.cli.plain.rows import Plain

OF_POD = Parameter("pod_id", "text", "Of this pod: its id or clientId.")
NEW_KEY = OPERATIONS["create_account_key"]
PAGE = (Parameter("limit", "integer", default=50), Parameter("offset", "integer", default=0))
POD = ("id", "client_id", "name")
USER = ("id", "email", "name", "role", "pods pod_ids", "state", "invitation invitation_url")

SENDING_RULES = (
    Plain(
        "rules list",
        "list_rules",
        "List the rules of the account, a pod or an inbox, in their order.",
        columns=("id", "name", "query", ("does", rules.does), "on enabled", "matches", "why disabled_reason"),
        empty="No rule here. Add one: postroom rules create NAME SEARCH --do label=NAME",
    ),
    Plain(
        "briefing",
        "get_briefing",
        "Count new, held, awaited, overdue and failed messages, and today's events.",
        fields=(
            "since",
            "received received.count",
            "held held.count",
            "awaiting awaiting.count",
            "overdue overdue.count",
            "failed failed.count",
            "agenda agenda.count",
        ),
    ),
    Plain("rules get", "get_rule", "Show a rule.", show=rules.show),
    Plain(
        "rules enable",
        "update_rule",
        "Switch a rule on.",
        show=rules.show,
        options=(),
        fixed={"enabled": True},
    ),
    Plain(
        "rules disable",
        "update_rule",
        "Switch a rule off.",
        show=rules.show,
        options=(),
        fixed={"enabled": False},
    ),
    Plain(
        "rules move",
        "update_rule",
        "Move a rule to another position in its list; the first is 0.",
        show=rules.show,
        arguments=("rule_id", "position"),
        options=(),
    ),
    Plain(
        "rules delete",
        "delete_rule",
        "Delete a rule; what it did stays.",
        confirm="Delete {rule_id}?",
        done="{rule_id} is deleted.",
    ),
    Plain(
        "approvals list",
        "list_approvals",
        "List what waits for a decision, oldest first.",
        columns=(
            "id message.id",
            "state hold.state",
            "why hold.reasons",
            "since message.created_at",
            "from message.from_addr",
            "to message.header_to",
            "subject message.subject",
        ),
        empty="Nothing is waiting for a decision.",
        then=approvals.say_how_to_see_one,
    ),
    Plain(
        "approvals reject",
        "reject_message",
        "Reject a held message; it is never sent.",
        show=approvals.show_decided,
    ),
    Plain(
        "budgets get",
        "get_inbox_limits",
        "Show what an inbox may send, and how much of it is used.",
        show=shown.show_limits,
        arguments=(),
    ),
    Plain("resume", "resume", "End a pause; email that nothing else holds is sent.", show=shown.show_pause),
    Plain(
        "policies get",
        "get_policy",
        "Show the policy: who may write, and be written to.",
        show=shown.show_policy,
    ),
    Plain(
        "policies mode",
        "set_policy_mode",
        "Choose whether only allowed addresses pass.",
        show=shown.show_policy,
        arguments=("direction", "mode"),
    ),
    Plain(
        "policies allow",
        "add_policy_rule",
        "Allow an address or a domain; used where the mode is allowlist.",
        show=shown.show_rule,
        arguments=("direction", "value"),
        fixed={"type": "allow"},
    ),
    Plain(
        "policies block",
        "add_policy_rule",
        "Block an address or a domain.",
        show=shown.show_rule,
        arguments=("direction", "value"),
        fixed={"type": "block"},
    ),
    Plain("policies delete", "delete_policy_rule", "Remove a rule.", done="{rule_id} is removed."),
    Plain(
        "policies stops",
        "list_policy_audit",
        "List what policies stopped, newest first.",
        columns=("when at", "what action", "direction", "who address", "rule", "message message_id"),
        empty="No policy has stopped anything here.",
    ),
)

TENANTS = (
    Plain("pods create", "create_pod", "Create a pod.", fields=POD),
    Plain(
        "pods list",
        "list_pods",
        "List the pods.",
        columns=("id", "client_id", ("name", shown.pod_name), "created created_at"),
    ),
    Plain("pods update", "update_pod", "Change a pod: its name, its relay.", fields=POD),
    Plain("pods get", "get_pod", "Show a pod.", fields=POD),
    Plain(
        "pods rename",
        "update_pod",
        "Rename a pod.",
        fields=POD,
        arguments=("pod_id", "name"),
        options=(),
    ),
    Plain(
        "pods identify",
        "update_pod",
        "Change a pod's clientId; an empty one clears it.",
        fields=POD,
        arguments=("pod_id", "client_id"),
        options=(),
    ),
    Plain(
        "pods delete",
        "delete_pod",
        "Delete a pod that holds no inbox and no domain.",
        confirm="Delete the pod {pod_id} and its keys?",
        done="{pod_id} is removed.",
    ),
    Plain(
        "users create",
        "create_user",
        "Invite a person by email, with a role.",
        fields=USER,
        arguments=("email",),
    ),
    Plain(
        "users list",
        "list_users",
        "List the people of the account, oldest first.",
        columns=("id", "email", "name", "role", "state", "last seen last_seen_at"),
        empty="Nobody yet. Invite somebody: postroom users create ann@example.org --role approver",
    ),
    Plain("users get", "get_user", "Show a user.", fields=USER),
    Plain("users update", "update_user", "Change a user's role, pods or name.", fields=USER),
    Plain(
        "users reinvite",
        "invite_user",
        "Send the invitation again; the earlier one stops working.",
        fields=USER,
    ),
    Plain(
        "users delete",
        "delete_user",
        "Remove a user, with the keys and programs they allowed.",
        confirm="Remove the user {user_id}?",
        done="{user_id} is removed.",
    ),
    Plain(
        "keys create",
        "create_key",
        "Create a key of the account, or of a pod, and show it once.",
        fields=shown.TOKEN,
        note=shown.KEEP_TOKEN,
        more=NEW_KEY,
    ),
    Plain(
        "keys list",
        "list_keys",
        "List the keys of the account, its pods and inboxes, or of one pod, oldest first.",
        columns=(
            "id",
            "name",
            ("scope", shown.key_scope_name),
            ("key", shown.key_shown),
            "permissions",
            ("last used", shown.last_used),
        ),
        empty="No key here. Create one: postroom keys create --name NAME",
        more=(OF_POD, *PAGE),
    ),
    Plain("keys get", "get_key", "Show a key: its scope and permissions.", fields=shown.KEY),
    Plain(
        "keys update",
        "update_key",
        "Change a key; permissions can only be removed, and it can only expire sooner.",
        fields=("id", "name", "permissions"),
    ),
    Plain(
        "keys delete",
        "delete_key",
        "Revoke a key at once, also on open streams.",
        done="{key_id} is revoked.",
    ),
    Plain(
        "feedback",
        "give_feedback",
        "Report a bug, friction or a missing feature to the operator.",
        fields=("id",),
        note="Thank you. The operator can read it.",
    ),
    Plain(
        "audit list",
        "list_audit",
        "List who changed what and from which address, newest first.",
        columns=(
            "when at",
            ("who", lambda entry: shown.named(entry.actor)),
            "from address",
            ("what", shown.decided),
            "on target",
        ),
        empty="Nothing recorded.",
    ),
    Plain(
        "usage",
        "get_usage",
        "Show what was received, sent and stored; by default in the last 30 days.",
        show=shown.show_usage,
        names={"first": "from", "last": "to"},
    ),
)
