-- Our own trace field stands before a mail that came in. A mail is read without it, as it was when it came.

alter table raw_mails add column trace_bytes integer not null default 0;

-- Most mails have no blob, and need no entry here.
drop index raw_mails_by_blob;

create index raw_mails_by_blob on raw_mails (blob) where blob is not null;
