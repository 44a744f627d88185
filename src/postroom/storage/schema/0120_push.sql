-- What a person sees of the devices that ring.
alter table push_subscriptions add column name text not null default '';

alter table push_subscriptions add column last_error text;

alter table push_subscriptions add column failed_at bigint;

alter table push_subscriptions add column told_at bigint;

-- The browser has ended it: nothing is sent there any more.
alter table push_subscriptions add column ended_at bigint;
