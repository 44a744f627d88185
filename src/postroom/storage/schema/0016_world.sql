-- Mail that belongs together across threads, and who is known to an inbox.

-- Message-IDs that the mails of a thread name and that the thread does not hold.
create table named_ids (
    inbox_id text not null,
    rfc_message_id text not null,
    thread_id text not null,
    primary key (inbox_id, rfc_message_id, thread_id)
);

create index named_ids_by_thread on named_ids (thread_id);

-- Threads of one inbox that name or hold a Message-ID which the other names; each pair in both orders.
create table related_threads (
    thread_id text not null,
    related_id text not null,
    primary key (thread_id, related_id)
);

create index correspondents_trusted on correspondents (inbox_id, address) where is_trusted = 1;
