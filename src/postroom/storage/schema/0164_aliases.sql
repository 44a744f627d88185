-- Further addresses of inboxes. An address is unique among these and those of inboxes together.
create table aliases (
    address text primary key,
    inbox_id text not null,
    account_id text not null,
    -- The verified domain that it lies in, or the server's own.
    domain text not null,
    created_at bigint not null
);

create index aliases_by_inbox on aliases (inbox_id, created_at, address);

create index aliases_by_domain on aliases (account_id, domain);

-- The same addresses, separated by spaces: who has read the inbox knows them.
alter table inboxes add column aliases text;

-- Takes mail to every address of its domain that nobody has.
alter table inboxes add column catch_all integer not null default 0;

-- Takes mail to its name at every subdomain of its domain.
alter table inboxes add column subdomains integer not null default 0;

create unique index inboxes_by_catch_all on inboxes (domain) where catch_all = 1;

create index inboxes_by_subdomains on inboxes (domain) where subdomains = 1;

-- Inboxes may have addresses at its subdomains.
alter table domains add column subdomains integer not null default 0;
