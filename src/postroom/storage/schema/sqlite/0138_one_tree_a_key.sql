
create table kept_participants (
    thread_id text not null,
    address text not null,
    primary key (thread_id, address)
) without rowid;

insert into kept_participants (thread_id, address) select thread_id, address from participants order by thread_id, address;

drop table participants;

alter table kept_participants rename to participants;
