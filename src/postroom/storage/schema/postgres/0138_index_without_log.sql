
-- All of its tables, so that they are empty together; the row of `search_state` tells whether they are.
alter table search_words set unlogged;

alter table search_documents set unlogged;

alter table search_latecomers set unlogged;

alter table search_newest set unlogged;

alter table search_realms set unlogged;

alter table search_state set unlogged;
