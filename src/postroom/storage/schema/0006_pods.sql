-- Pods: the tenants of an account. Each account has one default pod, whose id is made from the account's.
-- Keys reach an account, a pod or an inbox, and may do what their permissions say.

create table pods (
    id text primary key,
    account_id text not null references accounts (id),
    client_id text,
    name text,
    is_default integer not null,
    inbox_count integer not null default 0,
    approval text,
    created_at bigint not null
);

create unique index pods_by_client_id on pods (account_id, client_id) where client_id is not null;

create index pods_by_account on pods (account_id, created_at, id);

insert into pods (id, account_id, client_id, name, is_default, inbox_count, created_at)
    select 'pod_' || substr(id, 5), id, null, null, 1, inbox_count, created_at from accounts;

alter table accounts add column pod_count integer not null default 1;

alter table accounts add column approval text;

alter table accounts add column retention_days integer;

alter table inboxes add column pod_id text not null default '';

update inboxes set pod_id = 'pod_' || substr(account_id, 5);

create index inboxes_by_pod on inboxes (pod_id, created_at, id);

alter table inboxes add column approval text;

alter table inboxes add column limits text;

alter table inboxes add column metadata text;

alter table inboxes add column retention_days integer;

alter table domains add column pod_id text not null default '';

update domains set pod_id = 'pod_' || substr(account_id, 5);

create index domains_by_pod on domains (pod_id, created_at, id);

alter table keys add column pod_id text;

alter table keys add column permissions text not null default 'read draft send approve manage';

update keys set permissions = 'read draft send' where inbox_id is not null;

alter table keys add column expires_at bigint;

alter table keys add column created_by text;

alter table keys add column approval text;

alter table keys add column limits text;

create index keys_by_pod on keys (pod_id, created_at, id);

create index keys_by_creator on keys (created_by);

-- Which pod an event is of, also after its inbox is gone; '' is the default pod, from before there were pods.
alter table events add column pod_id text not null default '';

create index events_by_pod on events (pod_id, position);
