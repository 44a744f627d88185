-- Who was asked to come again, and whose network did (POSTROOM_GREYLIST). A bucket holds one of both, so the table is bounded.
create table greylist (
    bucket text not null primary key,
    key text not null,
    first_at bigint not null,
    seen_at bigint not null
);

create index greylist_by_age on greylist (seen_at);
