create table search_words (
    doc bigint primary key,
    words tsvector not null
);

-- Entries wait in a list until there are some hundred: every search reads that list, so it is short (kB).
create index search_words_by_word on search_words using gin (words) with (fastupdate = on, gin_pending_list_limit = 256);
