-- Mail for outside that was kept instead of sent, and the signature that it would have left with.

alter table messages add column is_captured integer not null default 0;

alter table raw_mails add column signature bytea;
