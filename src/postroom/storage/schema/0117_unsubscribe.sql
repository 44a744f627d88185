-- 1: the mail carries a link by which its recipient wants no more.
alter table deliveries add column has_unsubscribe integer not null default 0;
