-- Mail out: idempotency, suppression, the queue of deliveries, sending domains and their keys.

create table idempotency_keys (
    account_id text not null,
    idempotency_key text not null,
    request_hash text not null,
    answer bytea not null,
    created_at bigint not null,
    primary key (account_id, idempotency_key)
);

create index idempotency_keys_by_age on idempotency_keys (created_at);

create table suppressions (
    account_id text not null,
    address text not null,
    type text not null,
    created_at bigint not null,
    primary key (account_id, address)
);

create index suppressions_by_age on suppressions (account_id, created_at, address);

-- Who ever wrote to an inbox: anybody else is a cold recipient.
create table correspondents (
    inbox_id text not null,
    address text not null,
    primary key (inbox_id, address)
);

-- The one queue. A delivery of kind `mail` carries a message to one recipient, one of kind `webhook` an
-- event to one URL. Deliveries of one lane go to the same place: few at a time. `due_at` is when to try next, or until when a claim holds.
create table deliveries (
    id text primary key,
    account_id text not null,
    inbox_id text not null,
    kind text not null,
    message_id text not null,
    event_id text,
    target text not null,
    lane text not null,
    position integer not null,
    is_cold integer not null,
    state text not null,
    attempts integer not null,
    waits_used integer not null,
    due_at bigint not null,
    last_code integer,
    last_reply text not null,
    created_at bigint not null,
    finished_at bigint
);

create index deliveries_by_due on deliveries (kind, due_at) where state = 'pending';

create index deliveries_by_message on deliveries (message_id, kind, position);

create index deliveries_by_account on deliveries (account_id, kind, created_at, id);

create index deliveries_cold on deliveries (inbox_id, created_at) where is_cold = 1;

create index deliveries_by_end on deliveries (finished_at) where finished_at is not null;

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

create table domains (
    id text primary key,
    account_id text not null references accounts (id),
    name text not null,
    verified_at bigint,
    created_at bigint not null,
    unique (account_id, name)
);

create index domains_by_account on domains (account_id, created_at, id);

-- A domain belongs to whoever proved it first.
create unique index domains_verified on domains (name) where verified_at is not null;

create table dkim_keys (
    owner text not null,
    domain text not null,
    selector text not null,
    private_key bytea not null,
    primary key (owner, domain)
);
