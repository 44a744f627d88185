-- Labels of single messages, and which of them were read alone. Names that clients give to inboxes and drafts.

-- Up to this moment everything that came in was read. What came later is read while the thread is.
alter table threads add column read_through bigint not null default 0;

update threads set read_through = last_message_at where is_read = 1;

-- `labels` has those of a thread: all that its messages have. '\seen' marks one that was read alone.
create table message_labels (
    message_id text not null,
    label text not null,
    shown text not null,
    thread_id text not null,
    inbox_id text not null,
    created_at bigint not null,
    primary key (message_id, label)
);

create index message_labels_by_inbox on message_labels (inbox_id, label, created_at, message_id);

create index message_labels_by_thread on message_labels (thread_id, label);

insert into message_labels (message_id, label, shown, thread_id, inbox_id, created_at)
select messages.id, labels.label, labels.shown, messages.thread_id, messages.inbox_id, messages.created_at
from labels join messages on messages.thread_id = labels.thread_id;

alter table inboxes add column client_id text;

create unique index inboxes_by_client_id on inboxes (pod_id, client_id) where client_id is not null;

alter table drafts add column client_id text;

create unique index drafts_by_client_id on drafts (inbox_id, client_id) where client_id is not null;

-- As JSON; null: none.
alter table drafts add column labels text;

-- In which words its events are told; empty: in those of the interface.
alter table webhooks add column vocabulary text not null default '';
