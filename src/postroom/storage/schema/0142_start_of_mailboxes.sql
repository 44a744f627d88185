-- Where the reading of a mailbox began: emails up to this UID were there before, and are judged by their date.
alter table connections add column start_uid bigint not null default 0;

-- The date of the newest email that was there then, by the mailbox's own clock. Null: not known.
alter table connections add column begins_at bigint;
