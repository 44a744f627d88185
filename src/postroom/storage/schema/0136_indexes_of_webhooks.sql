-- The log of webhooks alone is read by account: the deliveries of a mail are found by their message.
drop index deliveries_by_account;
create index deliveries_by_account on deliveries (account_id, created_at, id) where kind = 'webhook';
drop index deliveries_by_state;
create index deliveries_by_state on deliveries (account_id, state, created_at, id) where kind = 'webhook';
