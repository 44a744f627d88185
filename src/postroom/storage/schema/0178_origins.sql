-- What happens to a send that carries a value from somewhere else than the people it goes to; null: the level above.
alter table accounts add column origin_guard text;

alter table pods add column origin_guard text;

alter table inboxes add column origin_guard text;

alter table keys add column origin_guard text;

-- Values that are never untrusted, as JSON; null: none.
alter table accounts add column trusted_values text;

alter table pods add column trusted_values text;

-- The values that a send is held for, as JSON: what each is, its kind, and the message that it came with.
alter table holds add column origins text;
