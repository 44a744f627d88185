-- Long work that a request began: erasing a contact. `subject` is the address, at the end its hash.
-- `position` (JSON) is where the work goes on, written with each step: a node that dies loses nothing.
create table jobs (
    id text primary key,
    account_id text not null,
    pod_id text,
    kind text not null,
    subject text not null,
    actor text not null, -- JSON: who asked
    person text not null, -- who may not confirm it as the second person
    state text not null,
    position text not null,
    done integer not null,
    total integer not null,
    result text not null, -- JSON: counts
    created_at bigint not null,
    finished_at bigint
);

create index jobs_running on jobs (created_at, id) where state = 'running';

create index jobs_by_subject on jobs (account_id, subject);

create index jobs_by_end on jobs (finished_at) where finished_at is not null;

-- The entry that says that an erasure took the content of this one. Its hash stays, so that the chain holds.
alter table audit add column erased_by text;

-- 1: erasing a contact needs a second person.
alter table accounts add column erasure_approval integer not null default 0;
