-- Each entry of the audit log names the one before it, in one chain for each account. Refusals that are still
-- counted get their place when their minute is over.
alter table audit add column sequence bigint;
alter table audit add column hash text;
alter table audit add column previous_hash text;
-- How the person had signed in: passkey, link, openid, key; empty for an API key.
alter table audit add column method text not null default '';

create unique index audit_by_sequence on audit (account_id, sequence) where sequence is not null;

create index audit_by_target on audit (target, created_at, id) where inbox_id is not null;

create index audit_unchained on audit (created_at, id) where sequence is null;

-- The newest entry of the chain.
alter table accounts add column audit_count bigint not null default 0;
alter table accounts add column audit_hash text not null default '';

alter table sessions add column method text not null default '';

-- The hash of the bytes that were handed over, and their envelope sender.
alter table attempts add column content_hash text;
alter table attempts add column mail_from text;

-- Signs receipts and heads of the audit log (Ed25519).
create table signing_keys (
    id text primary key,
    purpose text not null,
    private_key bytea not null,
    public_key bytea not null,
    valid_from bigint not null,
    valid_until bigint
);

-- One key signs at a time, whichever node made it.
create unique index signing_key_in_use on signing_keys (purpose) where valid_until is null;

-- Heads of the log, signed once an hour if it has grown.
create table audit_heads (
    account_id text not null,
    count bigint not null,
    hash text not null,
    signed_at bigint not null,
    signature text not null,
    key_id text not null,
    primary key (account_id, count)
);

-- Up to where the daily file of an account goes.
create table audit_exports (
    account_id text primary key,
    count bigint not null,
    exported_at bigint not null
);
