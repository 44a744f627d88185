-- What a mail program deleted is in Trash: in no list, count or search, and not gone.
alter table messages add column is_trashed integer not null default 0;

drop index messages_by_inbox;

create index messages_by_inbox on messages (inbox_id, created_at, id) where direction <> 'blocked' and is_trashed = 0;

create index messages_in_trash on messages (inbox_id, created_at, id) where is_trashed = 1;
