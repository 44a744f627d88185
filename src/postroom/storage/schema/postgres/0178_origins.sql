-- The values of each message, as keyed hashes that only the server can make; each inbox has a key of its own.
create table origin_values (
    fingerprint bigint not null,
    message_id text collate "C" not null,
    primary key (fingerprint, message_id)
);

create index origin_values_of_message on origin_values (message_id);
