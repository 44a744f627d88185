-- SQL that SQLite and PostgreSQL both read. Ids are text, moments are milliseconds (bigint), flags are 0 or 1.
-- Counters stand where totals are asked for, so that no list ever counts rows.
-- The largest column of a table is its last: SQLite reads what stands behind it by way of all its pages.

-- Accounts: who may do what.

create table accounts (
    id text primary key,
    name text not null,
    plan text not null,
    approval text,
    retention_days integer,
    -- Null: no limit but the disk.
    storage_limit_bytes bigint,
    stored_bytes bigint not null default 0,
    pod_count integer not null default 1,
    inbox_count integer not null default 0,
    event_position bigint not null default 0,
    created_at bigint not null,
    -- Set: its keys are gone, and everything else is being removed, a few rows at a time.
    removed_at bigint
);

create unique index accounts_by_name on accounts (name);

create index accounts_removed on accounts (removed_at) where removed_at is not null;

create index accounts_with_retention on accounts (id) where retention_days is not null;

-- Each account has one default pod, whose id is made from the account's.
create table pods (
    id text primary key,
    account_id text not null references accounts (id),
    client_id text,
    name text,
    is_default integer not null,
    inbox_count integer not null default 0,
    approval text,
    created_at bigint not null
);

create unique index pods_by_client_id on pods (account_id, client_id) where client_id is not null;

create index pods_by_account on pods (account_id, created_at, id);

create table inboxes (
    id text primary key,
    account_id text not null references accounts (id),
    pod_id text not null,
    address text not null unique,
    -- The domain of the address, to find out whether a domain is still in use.
    domain text not null,
    display_name text,
    webhook_url text,
    approval text,
    limits text,
    metadata text,
    retention_days integer,
    thread_count integer not null default 0,
    unread_count integer not null default 0,
    inbound_count integer not null default 0,
    outbound_count integer not null default 0,
    blocked_count integer not null default 0,
    -- What its mail takes now; `stored_bytes` of `usage_days` is the change in a day.
    stored_bytes bigint not null default 0,
    created_at bigint not null
);

create index inboxes_by_account on inboxes (account_id, created_at, id);

create index inboxes_by_pod on inboxes (pod_id, created_at, id);

create index inboxes_by_account_and_id on inboxes (account_id, id);

create index inboxes_by_domain on inboxes (account_id, domain);

create index inboxes_with_retention on inboxes (id) where retention_days is not null;

-- One row for each creation, kept when the inbox is deleted: the daily limit counts these.
create table inbox_creations (
    inbox_id text primary key,
    account_id text not null references accounts (id),
    created_at bigint not null
);

create index inbox_creations_by_account on inbox_creations (account_id, created_at);

create index inbox_creations_by_age on inbox_creations (created_at);

-- Deleted inboxes whose mail is being removed, a few rows at a time.
create table removed_inboxes (
    inbox_id text primary key,
    removed_at bigint not null
);

-- The scope of a key is an account, a pod or an inbox.
create table keys (
    id text primary key,
    account_id text not null references accounts (id),
    pod_id text,
    inbox_id text references inboxes (id),
    name text not null,
    permissions text not null,
    token_hash text not null unique,
    token_prefix text not null,
    last4 text not null,
    approval text,
    limits text,
    created_by text,
    -- The keys that it was made by, and those that these were made by, also deleted ones: none of them approves what it sends.
    lineage text not null,
    -- The key whose limits it shares: keys made by a limited key do not multiply what that may send.
    budget_id text,
    created_at bigint not null,
    last_used_at bigint,
    expires_at bigint
);

create index keys_by_account on keys (account_id, created_at, id);

create index keys_by_pod on keys (pod_id, created_at, id);

create index keys_by_inbox on keys (inbox_id, created_at, id);

create index keys_by_creator on keys (created_by);

create table domains (
    id text primary key,
    account_id text not null references accounts (id),
    pod_id text not null,
    name text not null,
    verified_at bigint,
    created_at bigint not null,
    unique (account_id, name)
);

create index domains_by_account on domains (account_id, created_at, id);

create index domains_by_pod on domains (pod_id, created_at, id);

create index domains_by_name on domains (name);

-- A domain belongs to the first account that verified it.
create unique index domains_verified on domains (name) where verified_at is not null;

create table dkim_keys (
    owner text not null,
    domain text not null,
    selector text not null,
    private_key bytea not null,
    primary key (owner, domain)
);

create table secrets (
    name text primary key,
    value bytea not null
);

-- Sessions of the dashboard, and links that start one.
create table sessions (
    id text primary key,
    token_hash text not null unique,
    account_id text not null,
    key_id text not null,
    name text not null,
    is_operator integer not null,
    address text not null,
    user_agent text not null,
    created_at bigint not null,
    last_used_at bigint not null,
    expires_at bigint not null,
    by_key integer not null -- opened with a key, which it then is wherever the sender of a mail is asked for
);

create index sessions_of_account on sessions (account_id, created_at);

create index sessions_by_end on sessions (expires_at);

create table login_links (
    token_hash text primary key,
    account_id text not null,
    key_id text not null,
    is_operator integer not null,
    created_at bigint not null,
    expires_at bigint not null
);

create index login_links_by_end on login_links (expires_at);

-- Who decided what, and from which address. Rows never change, except that the same refusal within a minute counts up.
create table audit (
    id text primary key,
    account_id text not null,
    pod_id text,
    inbox_id text,
    actor_type text not null,
    actor_id text not null,
    actor_name text not null,
    address text not null,
    action text not null,
    target text not null,
    before text,
    after text,
    count integer not null,
    minute bigint,
    created_at bigint not null
);

create index audit_by_account on audit (account_id, created_at, id);

create index audit_by_pod on audit (pod_id, created_at, id);

create index audit_by_actor on audit (account_id, actor_id, created_at, id);

create index audit_by_action on audit (account_id, action, created_at, id);

create index audit_by_age on audit (created_at);

create unique index audit_refusals on audit (account_id, actor_id, action, target, minute) where minute is not null;

-- One row for each scope (account, pod or inbox) and direction that has a policy.
create table policies (
    scope_id text not null,
    direction text not null,
    account_id text not null,
    mode text not null,
    rule_count integer not null,
    primary key (scope_id, direction)
);

create table policy_rules (
    id text primary key,
    account_id text not null,
    scope_id text not null,
    direction text not null,
    type text not null,
    value text not null,
    created_at bigint not null
);

create unique index policy_rules_by_value on policy_rules (scope_id, direction, value, type);

create index policy_rules_by_age on policy_rules (scope_id, direction, created_at, id);

create table policy_audit (
    id text primary key,
    account_id text not null,
    pod_id text not null,
    inbox_id text not null,
    action text not null,
    direction text not null,
    address text not null,
    rule text,
    message_id text,
    created_at bigint not null
);

create index policy_audit_by_account on policy_audit (account_id, created_at, id);

create index policy_audit_by_pod on policy_audit (pod_id, created_at, id);

create index policy_audit_by_inbox on policy_audit (inbox_id, created_at, id);

create index policy_audit_by_age on policy_audit (created_at);

-- Scopes (account, pod or inbox) from which nothing is sent for the time being.
create table pauses (
    scope_id text primary key,
    account_id text not null,
    since bigint not null,
    actor text not null
);

-- The mailbox: what is there to read.

create table threads (
    id text primary key,
    account_id text not null,
    pod_id text not null,
    inbox_id text not null,
    subject text not null,
    is_read integer not null,
    -- 1: one of its messages was judged suspicious or malicious.
    is_risky integer not null default 0,
    message_count integer not null,
    last_message_at bigint not null,
    created_at bigint not null
);

create index threads_by_inbox on threads (inbox_id, last_message_at, id);

create index threads_by_read_flag on threads (inbox_id, is_read, last_message_at, id);

create index threads_by_account on threads (account_id, is_read, last_message_at, id);

create index threads_by_pod on threads (pod_id, is_read, last_message_at, id);

-- Everybody who wrote or was addressed in a thread.
create table participants (
    thread_id text not null,
    address text not null,
    primary key (thread_id, address)
);

-- Message-IDs that the messages of a thread refer to and that are not in the thread.
create table named_ids (
    inbox_id text not null,
    rfc_message_id text not null,
    thread_id text not null,
    primary key (inbox_id, rfc_message_id, thread_id)
);

create index named_ids_by_thread on named_ids (thread_id);

-- Threads of one inbox that share a Message-ID; each pair in both orders.
create table related_threads (
    thread_id text not null,
    related_id text not null,
    primary key (thread_id, related_id)
);

-- `label` is folded, as it is compared; `shown` is as it was written. Lists are ordered by `last_message_at`.
create table labels (
    thread_id text not null,
    label text not null,
    shown text not null,
    account_id text not null,
    pod_id text not null,
    inbox_id text not null,
    last_message_at bigint not null,
    primary key (thread_id, label)
);

create index labels_by_account on labels (account_id, label, last_message_at, thread_id);

create index labels_by_pod on labels (pod_id, label, last_message_at, thread_id);

create index labels_by_inbox on labels (inbox_id, label, last_message_at, thread_id);

-- `document` is the JSON of the interface, encoded once, without the fields that change or expire.
create table messages (
    id text primary key,
    inbox_id text not null,
    thread_id text not null,
    direction text not null,
    status text not null,
    rfc_message_id text not null,
    from_address text not null,
    has_attachments integer not null,
    has_hold integer not null default 0,
    -- 1: mail to the outside that was kept instead of sent.
    is_captured integer not null default 0,
    -- The key that sent it, and the key whose limits it counts against.
    key_id text,
    budget_id text,
    created_at bigint not null,
    -- Where in `document` the reply text begins, and its length in bytes. Null: `document` has it as a field of its own.
    reply_at integer,
    reply_bytes integer,
    document bytea not null
);

create index messages_by_inbox on messages (inbox_id, created_at, id) where direction <> 'blocked';

create index messages_by_direction on messages (inbox_id, direction, created_at, id);

create index messages_by_thread on messages (thread_id, created_at, id);

create index messages_by_rfc_id on messages (inbox_id, rfc_message_id, id);

create index messages_by_budget on messages (budget_id, created_at) where budget_id is not null;

-- The bytes of a mail: in the row when small, so that one commit stores both; in a blob when large.
create table raw_mails (
    message_id text primary key,
    blob text,
    size_bytes bigint not null,
    -- The length of our own trace field, which stands before a mail that came in.
    trace_bytes integer not null default 0,
    -- Where in `content` the text and the HTML of the document belong, which are left out of it. Null: nothing is left out.
    text_at integer,
    html_at integer,
    -- The DKIM signature that a captured mail would have left with.
    signature bytea,
    content bytea
);

create index raw_mails_by_blob on raw_mails (blob) where blob is not null;

-- The bytes of an attachment are read from the raw mail; `position` is its place there.
create table attachments (
    message_id text not null,
    filename text not null,
    position integer not null,
    content_type text not null,
    size_bytes bigint not null,
    extraction_method text,
    parsed_text text,
    primary key (message_id, filename)
);

-- A message that was not let in has the direction `blocked`. What it answers and who takes part in it is kept here until
-- it is released.
create table blocked_mails (
    message_id text primary key,
    names text not null
);

-- Everybody who ever wrote to an inbox: anybody else is a cold recipient.
create table correspondents (
    inbox_id text not null,
    address text not null,
    -- 0: only mail that failed DMARC has come from this address.
    is_trusted integer not null default 1,
    -- The display name in letters alone: null until it is known, empty if another correspondent has it.
    name text,
    primary key (inbox_id, address)
);

create index correspondents_trusted on correspondents (inbox_id, address) where is_trusted = 1;

create index correspondents_by_name on correspondents (inbox_id, name) where is_trusted = 1 and name <> '';

-- Drafts: the fields of a send that is not sent yet, as the interface names them, and their files.
create table drafts (
    id text primary key,
    inbox_id text not null,
    fields bytea not null,
    actor text not null,
    version integer not null,
    created_at bigint not null,
    updated_at bigint not null
);

create index drafts_by_inbox on drafts (inbox_id, created_at, id);

create table draft_files (
    draft_id text not null,
    filename text not null,
    position integer not null,
    content_type text not null,
    size_bytes bigint not null,
    blob text,
    content bytea,
    primary key (draft_id, filename)
);

create index draft_files_by_blob on draft_files (blob) where blob is not null;

-- What happened in an inbox on a day (days since 1970, UTC); rows stay when the inbox is deleted.
create table usage_days (
    inbox_id text not null,
    day integer not null,
    account_id text not null,
    pod_id text not null,
    received bigint not null,
    sent bigint not null,
    failed bigint not null,
    bounced bigint not null,
    complained bigint not null,
    held bigint not null,
    blocked bigint not null,
    stored_bytes bigint not null,
    primary key (inbox_id, day)
);

create index usage_days_by_account on usage_days (account_id, day);

create index usage_days_by_pod on usage_days (pod_id, day);

-- Search. Messages that have to be put into the index, changed or removed there; `turn` grows when that is asked for again.
create table search_queue (
    message_id text primary key,
    turn integer not null
);

-- What is in the index. `doc` grows with arrival; messages that are indexed later count down from 0.
create table search_documents (
    doc bigint primary key,
    message_id text not null unique,
    version integer not null
);

-- Tokens of a pod begin with its number, so that a search in one never reads the words of another.
create table search_realms (
    pod_id text primary key,
    account_id text not null,
    number bigint not null unique
);

create index search_realms_by_account on search_realms (account_id, number);

-- One row. Messages before `cursor` still have to be brought to `version`; one node at a time does it.
create table search_state (
    name text primary key,
    version integer not null,
    cursor text not null,
    first_doc bigint not null,
    last_doc bigint not null,
    last_realm bigint not null,
    earlier_count bigint not null,
    earlier_done bigint not null,
    holder text not null,
    held_until bigint not null
);

insert into search_state (name, version, cursor, first_doc, last_doc, last_realm, earlier_count, earlier_done, holder, held_until)
    values ('index', 0, '', 1, 0, 0, 0, 0, '', 0);

-- The queue: what has to be done.

-- A delivery of kind `mail` carries a message to one recipient, one of kind `webhook` an event to one URL. Deliveries of
-- one lane go to the same place, a few at a time. `due_at` is the next attempt, or the end of a claim.
create table deliveries (
    id text primary key,
    account_id text not null,
    inbox_id text not null,
    kind text not null,
    message_id text not null,
    event_id text,
    webhook_owner text,
    target text not null,
    lane text not null,
    position integer not null,
    is_cold integer not null,
    -- 1: somebody asked for it again.
    is_replay integer not null default 0,
    state text not null,
    attempts integer not null,
    waits_used integer not null,
    due_at bigint not null,
    last_code integer,
    last_reply text not null,
    created_at bigint not null,
    finished_at bigint
);

-- With the lane, so that deliveries of a full lane are passed over without reading their rows.
create index deliveries_by_due on deliveries (kind, due_at, lane, id) where state = 'pending';

create index deliveries_by_message on deliveries (message_id, kind, position);

create index deliveries_by_account on deliveries (account_id, kind, created_at, id);

create index deliveries_by_state on deliveries (account_id, kind, state, created_at, id);

create index deliveries_cold on deliveries (inbox_id, created_at) where is_cold = 1;

create index deliveries_waiting on deliveries (inbox_id, message_id) where state = 'pending' and kind = 'mail';

-- Whether an address has failed before is asked after each failure that does not say why.
create index deliveries_failed on deliveries (account_id, target, created_at)
    where kind = 'mail' and state in ('bounced', 'failed');

create index deliveries_by_end on deliveries (kind, finished_at) where finished_at is not null;

-- Every attempt, written before it is made.
create table attempts (
    delivery_id text not null,
    number integer not null,
    started_at bigint not null,
    milliseconds integer,
    code integer,
    answer text,
    primary key (delivery_id, number)
);

create table idempotency_keys (
    account_id text not null,
    idempotency_key text not null,
    request_hash text not null,
    answer bytea not null,
    created_at bigint not null,
    primary key (account_id, idempotency_key)
);

create index idempotency_keys_by_age on idempotency_keys (created_at);

-- `message_id` and `reason`: the mail that led to it, and what the other server answered.
create table suppressions (
    account_id text not null,
    address text not null,
    type text not null,
    created_at bigint not null,
    message_id text,
    reason text,
    primary key (account_id, address)
);

create index suppressions_by_age on suppressions (account_id, created_at, address);

-- Work of which one node at a time does all. /ready writes a row of its own, to see that it can write.
create table duties (
    name text primary key,
    holder text not null,
    held_until bigint not null
);

-- Events: what has happened.

-- `payload` holds the bytes that streams and webhooks send, without the texts: those are read from the message.
-- `text_files` lists the attachments whose text belongs to it. Positions grow by one within an account.
create table events (
    id text primary key,
    account_id text not null,
    position bigint not null,
    -- Kept when the inbox is deleted.
    pod_id text not null,
    inbox_id text not null,
    message_id text not null,
    kind text not null,
    text_files text not null,
    created_at bigint not null,
    payload bytea not null
);

create unique index events_by_position on events (account_id, position);

-- There are few kinds: a reader of all of them asks once for each.
create index events_by_kind on events (account_id, kind, position);

create index events_by_inbox_and_kind on events (inbox_id, kind, position);

create index events_by_pod_and_kind on events (account_id, pod_id, kind, position);

create index events_by_message on events (message_id);

create index events_by_age on events (created_at);

-- One for an account, and one for each inbox that has its own.
create table webhooks (
    owner text primary key,
    account_id text not null,
    url text not null,
    event_types text not null,
    secret text not null,
    previous_secret text,
    previous_until bigint,
    enabled integer not null,
    disabled_reason text,
    failing_since bigint,
    created_at bigint not null
);

create index webhooks_by_account on webhooks (account_id);

-- Mail in.

-- What each inbox received lately: a mail that is sent again after a lost answer is stored once.
create table handovers (
    inbox_id text not null,
    content_hash text not null,
    received_at bigint not null,
    primary key (inbox_id, content_hash)
);

create index handovers_by_age on handovers (received_at);

-- Messages whose event waits for the text of attachments or for answers from DNS.
create table checks (
    message_id text primary key,
    peer_ip text not null,
    helo text not null,
    mail_from text not null,
    due_at bigint not null
);

create index checks_by_due on checks (due_at);

-- Answers of reviewers by mail, until it is known who wrote them.
create table review_answers (
    id text primary key,
    message_id text not null,
    reviewer text not null,
    from_address text not null,
    first_line text not null,
    is_automated integer not null,
    peer_ip text not null,
    helo text not null,
    mail_from text not null,
    due_at bigint not null,
    content bytea not null
);

create index review_answers_by_due on review_answers (due_at);

-- Mail out: sends that wait for a person, for their time or for the end of a pause, and what was decided about them.

create table holds (
    message_id text primary key,
    account_id text not null,
    pod_id text not null,
    inbox_id text not null,
    key_id text not null,
    state text not null,
    reasons text not null,
    content_hash text not null,
    bcc text not null,
    is_paused integer not null,
    expires_at bigint,
    send_at bigint,
    let_go_at bigint,
    due_at bigint,
    created_at bigint not null,
    decided_at bigint,
    actor text,
    note text,
    key_lineage text not null -- the keys that the sender's key comes from
);

create index holds_by_account on holds (account_id, state, created_at, message_id);

create index holds_by_pod on holds (pod_id, state, created_at, message_id);

create index holds_by_inbox on holds (inbox_id, state, created_at, message_id);

-- When the loop has to look at one: it expires, its time comes, or its pause has ended.
create index holds_by_due on holds (due_at) where due_at is not null;

create index holds_paused on holds (account_id, pod_id, inbox_id) where is_paused = 1;

create index holds_scheduled on holds (inbox_id, message_id) where state = 'scheduled' and let_go_at is null;

-- Search gives the newest first by when a mail came. Entries are numbered as they are made; for those that were made
-- later than the entry of a newer mail of their account, or whose mail was let in since, this tells when it came.

create table search_latecomers (
    doc bigint primary key,
    account_id text not null,
    arrived_at bigint not null
);

create index search_latecomers_by_arrival on search_latecomers (account_id, arrived_at, doc);

-- When the newest mail came that is in the index, for each account.
create table search_newest (
    account_id text primary key,
    newest_at bigint not null
);

