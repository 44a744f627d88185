-- When somebody first wrote to an inbox, and when a mail of theirs first passed DMARC. Null: before this was kept, or never.
alter table correspondents add column first_at bigint;

alter table correspondents add column verified_at bigint;
