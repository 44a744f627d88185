-- Drafts: the fields of a send that is not sent yet, in the words of the interface, and their files.

create table drafts (
    id text primary key,
    inbox_id text not null,
    fields bytea not null,
    actor text not null,
    version integer not null,
    created_at bigint not null,
    updated_at bigint not null
);

create index drafts_by_inbox on drafts (inbox_id, created_at, id);

create table draft_files (
    draft_id text not null,
    filename text not null,
    position integer not null,
    content_type text not null,
    size_bytes bigint not null,
    content bytea,
    blob text,
    primary key (draft_id, filename)
);

create index draft_files_by_blob on draft_files (blob) where blob is not null;
