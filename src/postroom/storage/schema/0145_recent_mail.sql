-- Messages of a folder from this UID on were told to no IMAP session as \Recent.
alter table folders add column recent_uid bigint not null default 0;

update folders set recent_uid = next_uid;
