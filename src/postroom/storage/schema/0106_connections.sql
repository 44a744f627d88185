-- Mail from and to elsewhere: mailboxes that are read by IMAP, and posts of mail services.

-- `settings` and `secrets` are JSON; what stands in `secrets` is never shown.
create table connections (
    id text primary key,
    account_id text not null references accounts (id),
    -- Null: the whole account.
    pod_id text,
    -- Where its mail goes. Null: to whom the mail is addressed.
    inbox_id text,
    kind text not null,
    provider text not null,
    state text not null,
    last_error text,
    last_mail_at bigint,
    -- Of the secret in the URL to which a service posts.
    token_hash text unique,
    -- How far the folder of a mailbox has been read.
    uid_validity bigint,
    last_uid bigint not null default 0,
    -- The node that reads the mailbox, and until when it has said so.
    leased_by text,
    leased_until bigint not null default 0,
    created_at bigint not null,
    settings text not null,
    secrets text not null
);

create index connections_by_account on connections (account_id, created_at, id);

create index connections_by_pod on connections (pod_id, created_at, id);

create index connections_by_inbox on connections (inbox_id);

create index connections_by_kind on connections (kind, id);

-- Every mail that was taken from a mailbox, so that none comes twice, also when its numbers begin anew.
create table taken_mails (
    connection_id text not null,
    content_hash text not null,
    uid_validity bigint not null,
    uid bigint not null,
    taken_at bigint not null,
    primary key (connection_id, content_hash)
);

-- Posts of a service by the id that it signed: the same id never stands for another content.
create table posts (
    connection_id text not null,
    post_id text not null,
    content_hash text not null,
    received_at bigint not null,
    primary key (connection_id, post_id)
);

create index posts_by_age on posts (received_at);

-- The address under which an inbox is known outside, and the connection by which its mail leaves.
alter table inboxes add column external_address text;

alter table inboxes add column connection_id text;

create index inboxes_by_connection on inboxes (connection_id, external_address) where connection_id is not null;

-- The relay by which mail of a domain or a pod leaves. Null: that of the server.
alter table domains add column outbound text;

alter table pods add column outbound text;

-- What the operator set for one account, as JSON. Null: the limits of the server.
alter table accounts add column limits text;
