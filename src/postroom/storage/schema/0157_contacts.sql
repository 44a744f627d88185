-- Who exchanged email with an inbox, counted as it was received and sent.
create table contacts (
    inbox_id text not null,
    address text not null,
    pod_id text not null,
    account_id text not null,
    name text not null,
    first_at bigint not null,
    last_at bigint not null,
    received integer not null,
    sent integer not null,
    threads integer not null,
    auth_passed integer not null,
    auth_failed integer not null,
    clean integer not null,
    suspicious integer not null,
    malicious integer not null,
    primary key (inbox_id, address)
);

create index contacts_of_pod on contacts (pod_id, address);

create index contacts_of_account on contacts (account_id, address);

create table contact_threads (
    thread_id text not null,
    address text not null,
    inbox_id text not null,
    primary key (thread_id, address)
);

create index threads_of_contact on contact_threads (inbox_id, address, thread_id);

-- What a contact is found by: its address, its domain, and the words of its name.
create table contact_words (
    inbox_id text not null,
    word text not null,
    address text not null,
    pod_id text not null,
    account_id text not null,
    primary key (inbox_id, word, address)
);

create index contact_words_of_pod on contact_words (pod_id, word, address);

create index contact_words_of_account on contact_words (account_id, word, address);

-- Inboxes whose email from before this file is still to be counted, up to a moment.
create table uncounted_contacts (
    inbox_id text primary key,
    behind_at bigint not null,
    behind_id text not null,
    until_at bigint not null
);

insert into uncounted_contacts (inbox_id, behind_at, behind_id, until_at)
select inbox_id, 0, '', max(created_at) from messages group by inbox_id;
