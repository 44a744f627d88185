-- What lists show of a thread: who takes part, and the newest text. Null: it is made anew, in the background.
alter table threads add column digest bytea;
-- The worst verdict of its messages: 1 clean, 2 suspicious, 3 malicious; 0: none is judged.
alter table threads add column verdict integer not null default 0;

create index threads_without_digest on threads (id) where digest is null;
