-- Junk. `junk` is JSON: what happens to it, and from which score on; the nearest that is set counts.
alter table accounts add column junk text;

alter table pods add column junk text;

alter table inboxes add column junk text;

-- A message in the Junk folder was not let in: it has the direction `blocked` and `is_junk`. `junk_count` counts these, and
-- `blocked_count` the others.
alter table messages add column is_junk integer not null default 0;

alter table inboxes add column junk_count integer not null default 0;

create index messages_in_junk on messages (inbox_id, created_at, id) where is_junk = 1;

-- Whom an inbox wrote to: their email is no junk by its words alone.
create index deliveries_by_target on deliveries (inbox_id, target) where kind = 'mail';

-- What people called junk, or wanted, one row a message: the last word counts. `learned_at` is null until the model of the
-- teacher has learned it, in the transaction that stores the model.
create table junk_examples (
    message_id text primary key, -- or the id of an example that is no message here
    features bytea, -- of such an example, until it is learned
    account_id text not null,
    teacher text not null, -- the user, or the key
    is_junk integer not null,
    taught_at bigint not null,
    learned_at bigint
);

create index junk_examples_to_learn on junk_examples (taught_at, message_id) where learned_at is null;

create index junk_examples_by_account on junk_examples (account_id, taught_at);

-- The weights that each teacher's examples gave, beside those that all accounts start with.
create table junk_models (
    account_id text not null,
    teacher text not null,
    weights bytea not null,
    changed_at bigint not null,
    primary key (account_id, teacher)
);
