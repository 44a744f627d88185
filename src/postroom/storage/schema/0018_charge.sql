-- Sends that wait for their moment: a pause marks them at once.

create index holds_scheduled on holds (inbox_id, message_id) where state = 'scheduled' and let_go_at is null;

-- The key whose budget a key shares: keys that a limited key made do not multiply what it may send.
alter table keys add column budget_id text;

alter table messages add column budget_id text;

update messages set budget_id = key_id where key_id is not null;

drop index messages_by_key;

create index messages_by_budget on messages (budget_id, created_at) where budget_id is not null;

-- The domain of its address: whether one is still used is looked up, not searched for.
alter table inboxes add column domain text not null default '';

update inboxes set domain = substr(ltrim(address, 'abcdefghijklmnopqrstuvwxyz0123456789.-'), 2);

create index inboxes_by_domain on inboxes (account_id, domain);
