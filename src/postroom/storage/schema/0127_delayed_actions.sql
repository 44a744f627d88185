-- What one click at a page asked for, and is done only after a while: until then it can be taken back.
create table delayed_actions (
    id text primary key,
    account_id text not null,
    session_id text not null,
    operation text not null,
    arguments text not null,
    targets text not null,
    said text not null,
    address text not null,
    due_at bigint not null,
    claimed_at bigint
);

create index delayed_actions_by_session on delayed_actions (session_id, due_at);

create index delayed_actions_by_due on delayed_actions (due_at);

create index delayed_actions_by_account on delayed_actions (account_id);
