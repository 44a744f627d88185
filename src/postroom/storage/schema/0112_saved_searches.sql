-- Searches that an account keeps, and indexes for what few mails are: failed, or told to be a risk.
alter table accounts add column saved_searches text not null default '[]';

create index messages_failed on messages (inbox_id) where status = 'failed';

create index threads_risky on threads (account_id) where is_risky = 1;
