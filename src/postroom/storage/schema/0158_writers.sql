-- Who has the reply to a thread open on a page, until a moment that the page moves on.
create table writers (
    thread_id text not null,
    person text not null, -- a user, or a session without one
    name text not null,
    until_at bigint not null,
    primary key (thread_id, person)
);

create index writers_by_end on writers (until_at);
