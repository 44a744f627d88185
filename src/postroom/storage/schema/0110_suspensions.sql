-- Why the server itself began a pause; null where a person did.
alter table pauses add column reason text;

-- When a person lifted the last suspension: what happened before counts no more.
alter table inboxes add column reactivated_at bigint not null default 0;
