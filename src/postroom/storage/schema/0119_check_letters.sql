-- Letters to check@ wait beside the reports, with what was seen of how they came.
alter table received_reports add column is_check integer not null default 0;

alter table received_reports add column peer_ip text not null default '';

alter table received_reports add column helo text not null default '';

alter table received_reports add column mail_from text not null default '';

alter table received_reports add column has_tls integer not null default 0;

-- When a sender got the last answer.
create table check_answers (
    sender text primary key,
    answered_at bigint not null
);

create index check_answers_by_age on check_answers (answered_at);
