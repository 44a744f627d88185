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
