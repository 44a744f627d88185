-- Whose answer a thread waits for: since when, and until when it is expected. `is_overdue`: it did not come, and that was told.
alter table threads add column awaiting_since bigint;

alter table threads add column awaiting_until bigint;

alter table threads add column awaiting_from text;

alter table threads add column awaiting_message text;

alter table threads add column is_overdue integer not null default 0;

create index threads_awaiting on threads (awaiting_until) where awaiting_until is not null and is_overdue = 0;

create index threads_awaiting_of_inbox on threads (inbox_id, last_message_at, id) where awaiting_until is not null;

create index threads_awaiting_of_pod on threads (pod_id, last_message_at, id) where awaiting_until is not null;

create index threads_awaiting_of_account on threads (account_id, last_message_at, id) where awaiting_until is not null;

-- Prepared nudges. `state`: scheduled, sent (accepted: it may wait for approval), cancelled or failed.
create table follow_ups (
    id text primary key,
    account_id text not null,
    inbox_id text not null,
    thread_id text not null,
    message_id text not null, -- the sent email that it follows
    key_id text not null, -- with whose rights it is sent
    body text,
    template_id text,
    due_at bigint not null,
    state text not null,
    reason text,
    sent_id text,
    sent_at bigint,
    created_at bigint not null
);

create index follow_ups_by_thread on follow_ups (thread_id, due_at, id);

create index follow_ups_due on follow_ups (due_at) where state = 'scheduled';

create unique index follow_ups_by_sent on follow_ups (sent_id) where sent_id is not null;
