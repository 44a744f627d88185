-- Accounts in the operator's hands: each name once, how much its mail takes and may take, and accounts on their way out.

-- Of several accounts of one name the oldest keeps it.
update accounts set name = substr(name, 1, 150) || ' (' || id || ')' where exists (
    select 1 from accounts as other where other.name = accounts.name
    and (other.created_at < accounts.created_at or (other.created_at = accounts.created_at and other.id < accounts.id)));

create unique index accounts_by_name on accounts (name);

alter table accounts add column stored_bytes bigint not null default 0;

-- Null: as much as there is room for.
alter table accounts add column storage_limit_bytes bigint;

update accounts set stored_bytes = coalesce((select sum(inboxes.stored_bytes) from inboxes where inboxes.account_id = accounts.id), 0);

-- Set: its keys are gone, and all else is being removed, a few rows at a time.
alter table accounts add column removed_at bigint;

create index accounts_removed on accounts (removed_at) where removed_at is not null;

-- Whose mail is kept for a number of days only.
create index accounts_with_retention on accounts (id) where retention_days is not null;

create index inboxes_by_account_and_id on inboxes (account_id, id);

create index inboxes_with_retention on inboxes (id) where retention_days is not null;
