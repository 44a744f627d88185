-- A target may get the whole email; and which message a notification is about.
alter table notification_targets add column content text not null default 'subject';

alter table notifications add column message_id text not null default '';
