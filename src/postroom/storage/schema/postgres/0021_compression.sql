-- Texts are compressed by LZ4 where the server was built with it: PostgreSQL's own way took a third of storing a mail.
do $$ begin if (select 'lz4' = any(enumvals) from pg_settings where name = 'default_toast_compression') then alter table messages alter column document set compression lz4; alter table raw_mails alter column content set compression lz4; alter table search_words alter column words set compression lz4; end if; end $$;

-- Each time that the list of new entries is taken into the index, the list of each word is written anew: with 2 MB it is
-- an eighth as often. A search reads the list, too.
alter index search_words_by_word set (gin_pending_list_limit = 2048);
