-- SQL that SQLite and PostgreSQL both read. Ids are text, moments are milliseconds (bigint), flags are 0 or 1.

create table accounts (
    id text primary key,
    name text not null,
    plan text not null,
    inbox_count integer not null default 0,
    created_at bigint not null
);

create table inboxes (
    id text primary key,
    account_id text not null references accounts (id),
    address text not null unique,
    display_name text,
    created_at bigint not null
);

create index inboxes_by_account on inboxes (account_id, created_at, id);

-- One row a creation, kept when the inbox is deleted: the limit of a day counts these.
create table inbox_creations (
    inbox_id text primary key,
    account_id text not null references accounts (id),
    created_at bigint not null
);

create index inbox_creations_by_account on inbox_creations (account_id, created_at);

create table keys (
    id text primary key,
    account_id text not null references accounts (id),
    inbox_id text references inboxes (id),
    name text not null,
    token_hash text not null unique,
    token_prefix text not null,
    last4 text not null,
    created_at bigint not null,
    last_used_at bigint
);

create index keys_by_account on keys (account_id, created_at, id);

create index keys_by_inbox on keys (inbox_id, created_at, id);
