-- Answers of reviewers by mail, until it is known who wrote them.

create table review_answers (
    id text primary key,
    message_id text not null,
    reviewer text not null,
    from_address text not null,
    first_line text not null,
    is_automated integer not null,
    peer_ip text not null,
    helo text not null,
    mail_from text not null,
    content bytea not null,
    due_at bigint not null
);

create index review_answers_by_due on review_answers (due_at);
