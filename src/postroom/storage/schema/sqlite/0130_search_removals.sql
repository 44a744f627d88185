-- What the entries of removed messages were made of, by the number of the change: an index that keeps no texts
-- takes an entry out when it is told it again.
create table search_removals (
    number integer primary key,
    mail blob not null
);
