-- Webhooks, one for an account and one for each inbox that has its own; and events found by their message.

create table webhooks (
    owner text primary key,
    account_id text not null,
    url text not null,
    event_types text not null,
    secret text not null,
    previous_secret text,
    previous_until bigint,
    enabled integer not null,
    disabled_reason text,
    failing_since bigint,
    created_at bigint not null
);

create index webhooks_by_account on webhooks (account_id);

alter table inboxes add column webhook_url text;

alter table deliveries add column webhook_owner text;

alter table events add column message_id text not null default '';

create index events_by_message on events (message_id);
