-- The index keeps no text. To remove an entry it needs the same text again, which is kept here, compressed.
create virtual table search_words using fts5 (words, content = '', columnsize = 0, tokenize = 'ascii');

create table search_texts (
    doc integer primary key,
    text blob not null
);
