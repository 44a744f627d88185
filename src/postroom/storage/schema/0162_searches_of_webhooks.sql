-- A webhook may have a search that a message must match, an end, and the form that MCP Events prescribe; such a
-- subscription ends with the key that made it.
alter table webhooks add column query text not null default '';

alter table webhooks add column expires_at bigint;

alter table webhooks add column form text not null default '';

alter table webhooks add column key_id text;

create index webhooks_by_expiry on webhooks (expires_at) where expires_at is not null;
