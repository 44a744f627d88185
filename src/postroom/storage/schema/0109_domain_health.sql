-- What the daily look at each domain found. `problems` names what is missing or wrong and breaks it, with spaces between.
create table domain_health (
    domain_id text primary key,
    account_id text not null,
    checked_at bigint not null,
    problems text not null
);

create index domain_health_by_account on domain_health (account_id, domain_id);
