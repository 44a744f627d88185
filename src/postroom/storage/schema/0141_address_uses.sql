-- Who uses an address: a user, the owner of a list of reviewers or of notification targets, or a connection that
-- pulls a mailbox. No inbox may receive or pull the email of a person. `address` is in lower case, without a +tag.
-- A row is a hint: its owner may be gone or may have changed since.
create table address_uses (
    address text not null,
    owner_id text not null,
    account_id text not null,
    primary key (address, owner_id)
);

create index address_uses_by_owner on address_uses (owner_id);

create index address_uses_by_account on address_uses (account_id);

-- Whether only the person may read it: then it is marked, and never stored in an inbox.
alter table letters add column is_personal integer not null default 1;
