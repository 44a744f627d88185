-- Which mail made an address suppressed, and what was said; and which deliveries a person asked for again.

alter table suppressions add column message_id text;

alter table suppressions add column reason text;

alter table deliveries add column is_replay integer not null default 0;
