-- Several keys of a domain: RSA and Ed25519 side by side, and while they are replaced the next and the last ones.
-- A key signs from `active_at`, when its record was found, to `retired_at`, when a newer one of its algorithm took over.
alter table dkim_keys rename to dkim_keys_before;

create table dkim_keys (
    owner text not null,
    domain text not null,
    selector text not null,
    algorithm text not null,
    private_key bytea not null,
    created_at bigint not null,
    active_at bigint,
    retired_at bigint,
    primary key (owner, domain, selector)
);

insert into dkim_keys (owner, domain, selector, algorithm, private_key, created_at, active_at)
    select owner, domain, selector, 'rsa', private_key, 0, 0 from dkim_keys_before;

drop table dkim_keys_before;

create index dkim_keys_retired on dkim_keys (retired_at);
