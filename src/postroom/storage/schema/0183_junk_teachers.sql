-- Examples whose features are kept are a teacher's newest: found by an index of their own, however many others there are.
create index junk_examples_to_repeat on junk_examples (account_id, teacher, is_junk, taught_at, message_id)
    where learned_at is not null and features is not null;

-- How far a teacher's weights may move a score: less for one who contradicts what the start is sure of.
alter table junk_models add column bound double precision not null default 3;
