-- What clamd said of a file: the name of what it found, and whether it looked at it at all.
alter table attachments add column infected text;

alter table attachments add column scanned integer not null default 0;
