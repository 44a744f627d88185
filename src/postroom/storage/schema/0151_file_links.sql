-- Links that take or give one file once, without a key. An upload that has arrived waits to be attached.
create table file_links (
    id text primary key,
    token_hash text not null unique,
    kind text not null,
    account_id text not null,
    inbox_id text not null,
    -- It ends with the key that made it.
    key_id text not null,
    -- Of a download: the file that it gives.
    message_id text,
    filename text not null,
    content_type text not null,
    size_bytes bigint not null,
    created_at bigint not null,
    expires_at bigint not null,
    -- Of an upload: when its bytes were stored, in the row if they are few, else in the blob.
    stored_at bigint,
    content bytea,
    blob text
);

create index file_links_by_expiry on file_links (expires_at);

create index file_links_by_account on file_links (account_id, kind);

create index file_links_by_inbox on file_links (inbox_id);

create index file_links_by_blob on file_links (blob) where blob is not null;

-- The message that a file of a draft was taken from.
alter table draft_files add column of_message text;
