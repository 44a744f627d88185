-- Holds: sends that wait for a person, a moment or the end of a pause, and what was decided about them.

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
    note text
);

create index holds_by_account on holds (account_id, state, created_at, message_id);

create index holds_by_pod on holds (pod_id, state, created_at, message_id);

create index holds_by_inbox on holds (inbox_id, state, created_at, message_id);

-- When the loop has to look at one: it expires, its moment comes, or its pause has ended.
create index holds_by_due on holds (due_at) where due_at is not null;

create index holds_paused on holds (account_id, pod_id, inbox_id) where is_paused = 1;

-- An account, a pod or an inbox from which nothing leaves for the time being.
create table pauses (
    scope_id text primary key,
    account_id text not null,
    since bigint not null,
    actor text not null
);

alter table messages add column has_hold integer not null default 0;

-- The key that sent it; budgets of a key count these.
alter table messages add column key_id text;

create index messages_by_key on messages (key_id, created_at) where key_id is not null;

-- All keys from which a key comes, also those that are gone: none of its line approves what a key sent.
alter table keys add column lineage text not null default '';

create index deliveries_waiting on deliveries (inbox_id, message_id) where state = 'pending' and kind = 'mail';

-- 0: only mail that failed DMARC has come from this address.
alter table correspondents add column is_trusted integer not null default 1;

-- 1: a message of it was judged suspicious or malicious.
alter table threads add column is_risky integer not null default 0;
