-- Where a decision came from, and when a person clicked for what the dashboard did after its time to undo.
alter table audit add column user_agent text not null default '';
alter table audit add column asked_at bigint;
