-- What spoke against the key of a mail when a person approved it all the same: `key`, `key_revoked` or nothing.
alter table holds add column excused text not null default '';

update holds set excused = 'key' where decided_at is not null and state in ('held', 'scheduled', 'approved', 'released');

-- A key that is revoked wakes what it has scheduled.
create index holds_scheduled_by_key on holds (key_id) where state = 'scheduled' and let_go_at is null;

-- The name of a file as it was given, where it is shown by another.
alter table attachments add column filename_raw text;
