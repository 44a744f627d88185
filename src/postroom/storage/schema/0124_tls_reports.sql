-- How sessions with the servers of a domain began, by day: counted until they are told to the domain (RFC 8460).
create table tls_sessions (
    day integer not null,
    domain text not null,
    policy_type text not null,
    policy text not null,
    result text not null,
    host text not null,
    ip text not null,
    reason text not null,
    count bigint not null,
    noted_at bigint not null,
    primary key (day, domain, policy_type, policy, result, host, ip, reason)
);

create index tls_sessions_by_age on tls_sessions (noted_at);

-- Reports that were written: one a domain and day, kept so that no second one is.
create table tls_reports (
    id text not null,
    domain text not null,
    day integer not null,
    content bytea not null,
    created_at bigint not null,
    primary key (domain, day)
);

create index tls_reports_by_id on tls_reports (id);

create index tls_reports_by_age on tls_reports (created_at);
