-- Whether an address has failed before is asked after each failure that does not say why.
create index deliveries_failed on deliveries (account_id, target, created_at)
    where kind = 'mail' and state in ('bounced', 'failed');
