-- What has a legal hold (1) is neither deleted nor expired.
alter table inboxes add column legal_hold integer not null default 0;

alter table threads add column legal_hold integer not null default 0;

create index inboxes_on_hold on inboxes (account_id) where legal_hold = 1;

create index threads_on_hold on threads (account_id, inbox_id) where legal_hold = 1;
