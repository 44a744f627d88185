-- The search index has a file of its own now, and is made anew there.
drop table search_words;

drop table search_texts;

drop table search_queue;

drop table search_documents;

drop table search_realms;

drop table search_state;

drop table search_latecomers;

drop table search_newest;

-- Messages that were stored, changed or removed, in their order; the index knows how far it has come.
create table search_changes (
    number integer primary key autoincrement,
    message_id text not null
);
