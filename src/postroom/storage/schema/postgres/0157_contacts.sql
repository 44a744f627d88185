-- What begins with some letters is found by a range of words: in the order of their bytes, whatever the database's own is.
alter table contact_words alter column word type text collate "C";

alter table contacts alter column address type text collate "C";
