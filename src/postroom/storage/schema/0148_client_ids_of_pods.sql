-- Keys of different pods may use the same client id: whether it is free is asked within the caller's scope.
drop index webhooks_by_client_id;
create index webhooks_by_client_id on webhooks (account_id, client_id) where client_id is not null;
drop index domains_by_client_id;
create index domains_by_client_id on domains (account_id, client_id) where client_id is not null;
