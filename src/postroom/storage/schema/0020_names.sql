-- By what name a correspondent goes, in letters alone: null until it is known, empty where it is another's.
alter table correspondents add column name text;

create index correspondents_by_name on correspondents (inbox_id, name) where is_trusted = 1 and name <> '';
