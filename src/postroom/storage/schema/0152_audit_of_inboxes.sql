-- The audit log of one inbox, newest first.
create index audit_by_inbox on audit (inbox_id, created_at, id);
