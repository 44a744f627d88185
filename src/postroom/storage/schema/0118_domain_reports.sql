-- Reports of other servers about a domain here, as they came and wait to be read.
create table received_reports (
    id text primary key,
    domain text not null,
    content bytea not null,
    due_at bigint not null
);

create index received_reports_by_due on received_reports (due_at);

-- What they said: of DMARC mails by source and verdicts, of TLS sessions by policy and result. `owner` is the account that
-- has proved the domain, or the service.
create table domain_reports (
    owner text not null,
    domain text not null,
    kind text not null,
    report_hash text not null,
    position integer not null,
    reporter text not null,
    day integer not null,
    source text not null,
    spf text not null,
    dkim text not null,
    disposition text not null,
    count bigint not null,
    received_at bigint not null,
    primary key (owner, domain, kind, report_hash, position)
);

create index domain_reports_by_day on domain_reports (owner, domain, kind, day);

create index domain_reports_received on domain_reports (received_at);
