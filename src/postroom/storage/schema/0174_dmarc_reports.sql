-- What was seen of email in the name of a domain, one row an email, until it is reported to that domain (RFC 9990).
create table dmarc_results (
    id text primary key, -- of the content
    day integer not null,
    domain text not null, -- whose DMARC record applied
    result text not null, -- JSON
    noted_at bigint not null
);

create index dmarc_results_by_domain on dmarc_results (day, domain);

create index dmarc_results_by_age on dmarc_results (noted_at);

-- Reports that were written: one a domain and day, kept so that no second one is.
create table dmarc_reports (
    id text not null,
    domain text not null,
    day integer not null,
    content bytea not null,
    created_at bigint not null,
    primary key (domain, day)
);

create index dmarc_reports_by_id on dmarc_reports (id);

create index dmarc_reports_by_age on dmarc_reports (created_at);
