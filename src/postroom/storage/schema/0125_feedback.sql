-- What programs and people tell whoever runs the server.
create table feedback (
    id text primary key,
    account_id text not null,
    -- The key that it came by, and what it was called then.
    key_id text not null,
    key_name text not null,
    type text not null,
    message text not null,
    -- An object in JSON, as it came.
    context text,
    created_at bigint not null
);

create index feedback_by_age on feedback (created_at, id);

create index feedback_by_key on feedback (key_id, created_at);

create index feedback_by_account on feedback (account_id);
