create table participants_by_key (
    thread_id text not null,
    address text not null,
    primary key (thread_id, address)
) without rowid;

insert into participants_by_key (thread_id, address) select thread_id, address from participants order by thread_id, address;

drop table participants;

alter table participants_by_key rename to participants;

create table attempts_by_key (
    delivery_id text not null,
    number integer not null,
    started_at bigint not null,
    milliseconds integer,
    code integer,
    answer text,
    host text,
    has_tls integer,
    primary key (delivery_id, number)
) without rowid;

insert into attempts_by_key (delivery_id, number, started_at, milliseconds, code, answer, host, has_tls)
    select delivery_id, number, started_at, milliseconds, code, answer, host, has_tls from attempts order by delivery_id, number;

drop table attempts;

alter table attempts_by_key rename to attempts;
