-- Examples whose features are kept are a teacher's newest: found by an index of their own, however many others there are.
create index junk_examples_to_repeat on junk_examples (account_id, teacher, is_junk, taught_at, message_id)
    where learned_at is not null and features is not null;

-- How often a teacher agreed with what the start is sure of, and contradicted it: that bounds what the weights do.
alter table junk_models add column agreed bigint not null default 0;

alter table junk_models add column contradicted bigint not null default 0;
