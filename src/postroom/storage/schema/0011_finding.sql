-- Finding: the index of words, labels on threads, lists across inboxes, and what each inbox used by day.

-- Messages whose place in the index has to be made, changed or removed. `turn` grows when that is asked for again.
create table search_queue (
    message_id text primary key,
    turn integer not null
);

-- What is in the index. `doc` grows with arrival; mail from before there was an index counts down from 0.
create table search_documents (
    doc bigint primary key,
    message_id text not null unique,
    version integer not null
);

-- Tokens of one pod begin with its number, so that a search in one never reads the words of another.
create table search_realms (
    pod_id text primary key,
    account_id text not null,
    number bigint not null unique
);

create index search_realms_by_account on search_realms (account_id, number);

-- One row. Mail before `cursor` still has to be brought to `version`; one node at a time holds the work.
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

-- `label` is folded, as it is compared; `shown` is as it was written. The last message's moment gives the order of lists.
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

alter table threads add column account_id text not null default '';

alter table threads add column pod_id text not null default '';

update threads set account_id = coalesce((select inboxes.account_id from inboxes where inboxes.id = threads.inbox_id), ''),
    pod_id = coalesce((select inboxes.pod_id from inboxes where inboxes.id = threads.inbox_id), '');

create index threads_by_account on threads (account_id, is_read, last_message_at, id);

create index threads_by_pod on threads (pod_id, is_read, last_message_at, id);

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

-- How much its mail takes now; `stored_bytes` of a day is by how much that changed.
alter table inboxes add column stored_bytes bigint not null default 0;

-- Null: from before it was counted.
alter table raw_mails add column size_bytes bigint;
