-- 1: put here by IMAP APPEND or an import, and not received by this server. Such mail makes nobody known.
alter table messages add column is_imported integer not null default 0;

-- 1: every message of the thread is imported. Imported mail joins no other thread.
alter table threads add column is_imported integer not null default 0;

-- Mail that came in has our trace field, and mail that was sent has its deliveries, which stay as long as the mail.
update messages set is_imported = 1 where direction = 'inbound'
    and exists (select 1 from raw_mails where raw_mails.message_id = messages.id and trace_bytes = 0);

update messages set is_imported = 1 where direction = 'outbound' and status = 'sent'
    and not exists (select 1 from deliveries where deliveries.message_id = messages.id);

update threads set is_imported = 1 where exists (select 1 from messages where thread_id = threads.id)
    and not exists (select 1 from messages where thread_id = threads.id and is_imported = 0);

-- Addresses that wrote in imported mail alone are not known. "Not in" could compare each of them with every message.
delete from correspondents where (inbox_id, address) in (
    select inbox_id, from_address from messages where is_imported = 1
    except select inbox_id, from_address from messages where direction = 'inbound' and is_imported = 0
);
