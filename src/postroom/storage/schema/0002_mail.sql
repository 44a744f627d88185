-- Mail in: threads, messages, their raw bytes and attachments, and the log of events.
-- Counters stand where totals are asked for, so that no list ever counts rows.

alter table accounts add column event_position bigint not null default 0;

alter table inboxes add column thread_count integer not null default 0;

alter table inboxes add column unread_count integer not null default 0;

alter table inboxes add column inbound_count integer not null default 0;

alter table inboxes add column outbound_count integer not null default 0;

-- Inboxes that were deleted and whose mail is being removed, a few rows at a time.
create table removed_inboxes (
    inbox_id text primary key,
    removed_at bigint not null
);

create table threads (
    id text primary key,
    inbox_id text not null,
    subject text not null,
    is_read integer not null,
    message_count integer not null,
    last_message_at bigint not null,
    created_at bigint not null
);

create index threads_by_inbox on threads (inbox_id, last_message_at, id);

create index threads_by_read_flag on threads (inbox_id, is_read, last_message_at, id);

-- Everybody who wrote or was addressed in a thread.
create table participants (
    thread_id text not null,
    address text not null,
    primary key (thread_id, address)
);

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
    document bytea not null,
    created_at bigint not null
);

create index messages_by_inbox on messages (inbox_id, created_at, id);

create index messages_by_direction on messages (inbox_id, direction, created_at, id);

create index messages_by_thread on messages (thread_id, created_at, id);

create index messages_by_rfc_id on messages (inbox_id, rfc_message_id, id);

-- What each inbox was handed lately: the same mail given again after a lost answer is stored once.
create table handovers (
    inbox_id text not null,
    content_hash text not null,
    received_at bigint not null,
    primary key (inbox_id, content_hash)
);

create index handovers_by_age on handovers (received_at);

-- The mail as it came. Small ones lie here, so that one commit keeps row and bytes; large ones in a blob.
create table raw_mails (
    message_id text primary key,
    content bytea,
    blob text
);

create index raw_mails_by_blob on raw_mails (blob);

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

-- Messages whose event waits for the text of attachments or for answers from DNS.
create table checks (
    message_id text primary key,
    peer_ip text not null,
    helo text not null,
    mail_from text not null,
    due_at bigint not null
);

create index checks_by_due on checks (due_at);

-- `payload` holds the very bytes that streams and webhooks send. Positions grow by one within an account.
create table events (
    id text primary key,
    account_id text not null,
    position bigint not null,
    inbox_id text not null,
    kind text not null,
    payload bytea not null,
    created_at bigint not null
);

create unique index events_by_position on events (account_id, position);

create index events_by_inbox on events (inbox_id, position);

create index events_by_age on events (created_at);

create table secrets (
    name text primary key,
    value bytea not null
);
