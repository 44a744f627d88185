-- What the other vocabulary names: permissions one by one, domains by a client's name, drafts on the clock,
-- and which labels were set and removed when.

-- Permissions of a key in the words of that vocabulary; null: all that its own permissions allow.
alter table keys add column words text;

alter table domains add column client_id text;

create unique index domains_by_client_id on domains (account_id, client_id) where client_id is not null;

-- A draft on the clock: when it is sent, for which key, and whether that failed.
alter table drafts add column due_at bigint;

alter table drafts add column due_for text;

alter table drafts add column failure text;

create index drafts_due on drafts (due_at) where due_at is not null and failure is null;

create table label_changes (
    id text primary key,
    inbox_id text not null,
    message_id text not null,
    label text not null,
    is_added integer not null,
    created_at bigint not null
);

create index label_changes_by_inbox on label_changes (inbox_id, created_at, id);

create index label_changes_by_message on label_changes (message_id);
