create table sessions (
    id text primary key,
    token_hash text not null unique,
    account_id text not null,
    key_id text not null,
    name text not null,
    is_operator integer not null,
    address text not null,
    user_agent text not null,
    created_at bigint not null,
    last_used_at bigint not null,
    expires_at bigint not null
);

create index sessions_of_account on sessions (account_id, created_at);
create index sessions_by_end on sessions (expires_at);

create table login_links (
    token_hash text primary key,
    account_id text not null,
    key_id text not null,
    is_operator integer not null,
    created_at bigint not null,
    expires_at bigint not null
);

create index login_links_by_end on login_links (expires_at);
