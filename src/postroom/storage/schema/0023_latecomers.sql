-- Search gives the newest first by when a mail came. Entries are numbered as they are made; for those that were made
-- later than the entry of a newer mail of their account, or whose mail was let in since, this tells when it came.

create table search_latecomers (
    doc bigint primary key,
    account_id text not null,
    arrived_at bigint not null
);

create index search_latecomers_by_arrival on search_latecomers (account_id, arrived_at, doc);

-- When the newest mail came that is in the index, for each account.
create table search_newest (
    account_id text primary key,
    newest_at bigint not null
);

insert into search_newest (account_id, newest_at)
    select account_id, cast(max(day) as bigint) * 86400000 from usage_days group by account_id;
