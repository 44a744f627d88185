-- Rules for email that comes in. `owner` is the account, pod or inbox that has the rule.
create table rules (
    id text primary key,
    account_id text not null,
    owner text not null,
    position integer not null,
    name text not null,
    query text not null,
    actions text not null, -- JSON
    stop integer not null default 0,
    enabled integer not null default 1,
    disabled_reason text,
    key_id text not null, -- whose rights it sends with
    created_at bigint not null
);

create index rules_by_owner on rules (owner, position, id);

create index rules_by_account on rules (account_id);

-- Grows with each change of an account's rules, so that processes know when to read them again.
create table rule_versions (
    account_id text primary key,
    version bigint not null
);

-- Which messages a rule matched, for 30 days.
create table rule_matches (
    rule_id text not null,
    message_id text not null,
    matched_at bigint not null,
    primary key (rule_id, message_id)
);

create index rule_matches_by_time on rule_matches (matched_at);

-- Actions of rules that are no part of a deposit: sends, copies, webhooks, the judge. Each is due once.
create table rule_tasks (
    id text primary key,
    account_id text not null,
    inbox_id text not null,
    message_id text not null,
    rule_id text not null,
    place integer not null, -- of the action in the rule
    action text not null, -- JSON
    tries integer not null default 0,
    due_at bigint not null
);

create index rule_tasks_due on rule_tasks (due_at);

-- Whom a rule answered on which day: an address gets one answer of an inbox a day (RFC 3834 section 2).
create table rule_replies (
    inbox_id text not null,
    address text not null,
    day bigint not null, -- its midnight, in UTC
    primary key (inbox_id, address, day)
);

create index rule_replies_by_day on rule_replies (day);

create index messages_by_sender on messages (inbox_id, from_address, id) where direction = 'inbound';
