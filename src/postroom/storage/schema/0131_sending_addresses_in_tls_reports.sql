-- From which of our addresses a session was tried, of which a report tells too (RFC 8460 section 4.4).
alter table tls_sessions rename to tls_sessions_without_own_ip;

drop index tls_sessions_by_age;

create table tls_sessions (
    day integer not null,
    domain text not null,
    policy_type text not null,
    policy text not null,
    result text not null,
    host text not null,
    ip text not null,
    own_ip text not null,
    reason text not null,
    count bigint not null,
    noted_at bigint not null,
    constraint tls_sessions_are_counted_once
        primary key (day, domain, policy_type, policy, result, host, ip, own_ip, reason)
);

insert into tls_sessions (day, domain, policy_type, policy, result, host, ip, own_ip, reason, count, noted_at)
select day, domain, policy_type, policy, result, host, ip, '', reason, count, noted_at
from tls_sessions_without_own_ip;

drop table tls_sessions_without_own_ip;

create index tls_sessions_by_age on tls_sessions (noted_at);
