-- People: users of an account, how they sign in, the programs that they let in, and who is told of what.

-- What a key stands for: key (a program), user (a person, without a token), oauth (a program that a person let in).
alter table keys add column kind text not null default 'key';

-- Set: the one address at which its token is good.
alter table keys add column resource text;

create table users (
    id text primary key,
    account_id text not null,
    email text not null,
    name text not null,
    role text not null,
    -- Empty: the whole account.
    pod_ids text not null,
    state text not null,
    -- Stands for the user wherever a key is asked for.
    key_id text not null unique,
    created_at bigint not null,
    last_seen_at bigint
);

create unique index users_by_email on users (account_id, email);

create index users_by_address on users (email);

alter table sessions add column user_id text;

-- The pod that somebody of several pods works in.
alter table sessions add column pod_id text;

create index sessions_by_user on sessions (user_id) where user_id is not null;

-- Set: the link signs in this user.
alter table login_links add column user_id text;

-- Invitations, and links to sign in, which are good only in the browser that asked for them.
create table mail_links (
    token_hash text primary key,
    account_id text not null,
    user_id text not null,
    purpose text not null,
    browser_hash text,
    created_at bigint not null,
    expires_at bigint not null
);

create index mail_links_by_user on mail_links (user_id, purpose, created_at);

create index mail_links_by_end on mail_links (expires_at);

-- Mails of the server itself to its users. A delivery of the kind letter names one as its message.
create table letters (
    id text primary key,
    account_id text not null,
    user_id text,
    recipient text not null,
    subject text not null,
    content text not null,
    state text not null,
    created_at bigint not null
);

create index letters_by_account on letters (account_id, created_at, id);

create index letters_by_age on letters (created_at);

-- Random values that somebody was given and has to bring back once: of passkeys and of single sign-on.
create table challenges (
    token_hash text primary key,
    purpose text not null,
    value text not null,
    expires_at bigint not null
);

create index challenges_by_end on challenges (expires_at);

create table passkeys (
    id text primary key,
    account_id text not null,
    user_id text not null,
    credential_id text not null unique,
    public_key bytea not null,
    sign_count bigint not null,
    name text not null,
    created_at bigint not null,
    last_used_at bigint
);

create index passkeys_by_user on passkeys (user_id, created_at);

-- How many different people a held send needs.
alter table holds add column approvals_needed integer not null default 1;

-- Who has approved it so far: a list in JSON.
alter table holds add column approvals text not null default '[]';

-- Programs that registered themselves (RFC 7591).
create table oauth_clients (
    id text primary key,
    name text not null,
    redirect_uris text not null,
    address text not null,
    created_at bigint not null,
    -- Without one it is removed after a day.
    granted_at bigint
);

create index oauth_clients_by_age on oauth_clients (created_at);

create index oauth_clients_by_address on oauth_clients (address, created_at);

create table oauth_grants (
    -- The key that it is.
    key_id text primary key,
    account_id text not null,
    user_id text,
    client_id text not null,
    resource text not null,
    refresh_hash text not null unique,
    expires_at bigint not null,
    created_at bigint not null
);

create index oauth_grants_by_client on oauth_grants (client_id);

create index oauth_grants_by_end on oauth_grants (expires_at);

-- Refresh tokens that were used: one that comes again ends its grant.
create table oauth_used_tokens (
    token_hash text primary key,
    key_id text not null,
    expires_at bigint not null
);

create index oauth_used_tokens_by_end on oauth_used_tokens (expires_at);

create table oauth_codes (
    code_hash text primary key,
    client_id text not null,
    redirect_uri text not null,
    challenge text not null,
    resource text not null,
    -- Who allowed it, and what: the key of the person, the reach and the permissions.
    account_id text not null,
    user_id text,
    maker_id text not null,
    pod_id text,
    inbox_id text,
    permissions text not null,
    -- The key that was made of it; using the code again ends that.
    key_id text,
    expires_at bigint not null
);

create index oauth_codes_by_end on oauth_codes (expires_at);

-- Programs without a browser, which wait for a person to allow them.
create table device_codes (
    request_hash text primary key,
    user_code text not null unique,
    state text not null,
    address text not null,
    account_id text,
    maker_id text,
    pod_id text,
    inbox_id text,
    permissions text,
    name text not null,
    expires_at bigint not null
);

create index device_codes_by_end on device_codes (expires_at);

-- Who is told what outside of the pages.
create table notification_targets (
    id text primary key,
    account_id text not null,
    position integer not null,
    kind text not null,
    target text not null,
    wanted text not null,
    last_error text,
    failed_at bigint,
    told_at bigint
);

create index notification_targets_by_account on notification_targets (account_id, position);

create table notifications (
    id text primary key,
    account_id text not null,
    target_id text not null,
    kind text not null,
    subject text not null,
    link text not null,
    count integer not null,
    state text not null,
    created_at bigint not null
);

create index notifications_by_target on notifications (target_id, state, created_at);

create index notifications_by_age on notifications (created_at);

create table push_subscriptions (
    id text primary key,
    account_id text not null,
    user_id text not null,
    endpoint text not null unique,
    p256dh text not null,
    auth text not null,
    created_at bigint not null
);

create index push_subscriptions_by_account on push_subscriptions (account_id);

-- Webhooks beside the one of the account and those of inboxes; their owner is an id of their own.
alter table webhooks add column is_listed integer not null default 0;

alter table webhooks add column client_id text;

alter table webhooks add column inbox_ids text not null default '';

alter table webhooks add column pod_ids text not null default '';

alter table webhooks add column headers text not null default '{}';

create index webhooks_listed on webhooks (account_id, created_at, owner) where is_listed = 1;

create unique index webhooks_by_client_id on webhooks (account_id, client_id) where client_id is not null;
