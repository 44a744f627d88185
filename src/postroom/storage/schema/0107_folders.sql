-- Folders, as mail programs see an inbox. An inbox has rows here from the day a program opens it for the first time.

-- `next_uid` and `modseq` only grow, in the order of commits; numbers of all folders of an inbox come from them.
create table folder_inboxes (
    inbox_id text primary key,
    uid_validity bigint not null,
    next_uid bigint not null,
    modseq bigint not null
);

-- `folder` is inbox, sent, drafts, junk, trash, or label: and a label as it is compared.
create table folders (
    inbox_id text not null,
    folder text not null,
    shown text not null,
    next_uid bigint not null,
    primary key (inbox_id, folder)
);

-- A message in a folder. A label's folder has those of the threads that have it.
create table folder_mails (
    inbox_id text not null,
    folder text not null,
    uid bigint not null,
    message_id text not null,
    modseq bigint not null,
    is_deleted integer not null default 0,
    primary key (inbox_id, folder, uid)
);

create index folder_mails_by_message on folder_mails (message_id, folder);

create index folder_mails_by_modseq on folder_mails (inbox_id, folder, modseq);

-- `flags` are the others, with spaces between them.
create table mail_flags (
    message_id text primary key,
    inbox_id text not null,
    is_seen integer not null,
    flags text not null default ''
);

create index mail_flags_by_inbox on mail_flags (inbox_id);
