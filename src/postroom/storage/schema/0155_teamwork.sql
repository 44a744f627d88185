-- What people do with a thread. `state`: 0 open, 1 snoozed (until `snoozed_until`), 2 done. An inbound message opens it.
alter table threads add column state integer not null default 0;

alter table threads add column snoozed_until bigint;

alter table threads add column assignee_id text;

create index threads_by_state_of_inbox on threads (inbox_id, state, last_message_at, id, assignee_id);

create index threads_by_state_of_pod on threads (pod_id, state, last_message_at, id, assignee_id);

create index threads_by_state_of_account on threads (account_id, state, last_message_at, id, assignee_id);

create index threads_by_assignee on threads (assignee_id, state, last_message_at, id) where assignee_id is not null;

create index threads_by_snooze on threads (snoozed_until) where snoozed_until is not null;

-- Internal notes on threads. They never leave the server.
create table notes (
    id text primary key,
    thread_id text not null,
    author text not null, -- JSON, as it was then
    created_at bigint not null,
    body text not null
);

create index notes_by_thread on notes (thread_id, created_at, id);
