-- What became of mail at the receiving providers, by the hour. Written with each outcome; a page only adds up.
create table provider_hours (
    account_id text not null,
    pod_id text not null,
    provider text not null,
    hour_at bigint not null,
    accepted bigint not null,
    deferred bigint not null,
    bounced bigint not null,
    complained bigint not null,
    encrypted bigint not null,
    milliseconds bigint not null,
    primary key (account_id, pod_id, provider, hour_at)
);

create index provider_hours_by_hour on provider_hours (hour_at);

-- Providers that asked for less (421, 451): so long between two mails, and when the next may go. No row: at full speed.
create table provider_paces (
    provider text primary key,
    interval_ms bigint not null,
    next_at bigint not null,
    backlog_at bigint not null,
    slowed_at bigint not null
);

create index provider_paces_by_slowed on provider_paces (slowed_at);

-- Domains whose mail begins with little, and how far they are with each provider.
create table warm_up_domains (
    domain text primary key,
    account_id text not null,
    since bigint not null
);

create table warm_ups (
    domain text not null,
    provider text not null,
    account_id text not null,
    step integer not null,
    day_at bigint not null,
    taken integer not null,
    told_at bigint not null,
    primary key (domain, provider)
);

create index warm_ups_by_day on warm_ups (day_at);

-- Where a mail went, and what it waits for if not for another attempt: warm_up or pace.
alter table deliveries add column provider text;

alter table deliveries add column waits_for text;
