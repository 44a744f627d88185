-- How far the mails of each journal have come: written together with the mails that were deposited.
create table journal_places (
    journal text primary key,
    segment bigint not null,
    position bigint not null
);
