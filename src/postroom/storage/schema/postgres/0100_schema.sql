create table search_words (
    doc bigint primary key,
    words tsvector not null
);

-- New entries wait in a list (kB) until it is full. Each time that it is taken into the index, the entry of each word is
-- written anew: a longer list writes less. Every search reads it, too.
create index search_words_by_word on search_words using gin (words) with (fastupdate = on, gin_pending_list_limit = 2048);

-- Texts are compressed by LZ4 where the server was built with it: PostgreSQL's own way took a third of the time to store a mail.
do $$ begin if (select 'lz4' = any(enumvals) from pg_settings where name = 'default_toast_compression') then alter table messages alter column document set compression lz4; alter table raw_mails alter column content set compression lz4; alter table search_words alter column words set compression lz4; end if; end $$;
