-- The file of the search index. All of it can be made anew from the messages, as is a file of another version.
pragma user_version = 3;

create virtual table if not exists search_words using fts5 (words, content = '', columnsize = 0, tokenize = "ascii tokenchars '_=<>@.'");

-- A batch is one segment, and segments are merged seldom: each merge writes them again.
insert into search_words (search_words, rank) values ('hashsize', 8000000), ('automerge', 32), ('crisismerge', 128);

create table if not exists search_documents (
    doc integer primary key,
    message_id text not null unique,
    version integer not null,
    realm text not null default ''
);

create table if not exists search_realms (
    pod_id text primary key,
    account_id text not null,
    number bigint not null unique
);

create index if not exists search_realms_by_account on search_realms (account_id, number);

create table if not exists search_state (
    name text primary key,
    version integer not null,
    cursor text not null,
    first_doc bigint not null,
    last_doc bigint not null,
    last_realm bigint not null,
    earlier_count bigint not null,
    earlier_done bigint not null,
    holder text not null,
    held_until bigint not null,
    reached bigint not null
);

insert into search_state (name, version, cursor, first_doc, last_doc, last_realm, earlier_count, earlier_done, holder, held_until, reached)
    values ('index', 0, '', 1, 0, 0, 0, 0, '', 0, 0) on conflict (name) do nothing;

create table if not exists search_latecomers (
    doc bigint primary key,
    account_id text not null,
    arrived_at bigint not null
);

create index if not exists search_latecomers_by_arrival on search_latecomers (account_id, arrived_at, doc);

create table if not exists search_newest (
    account_id text primary key,
    newest_at bigint not null
);
