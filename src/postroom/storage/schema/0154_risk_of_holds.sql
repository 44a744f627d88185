-- What waits for a decision is listed by its risk, then by its age: 3 with the canary token, 2 in a thread with malicious mail,
-- 1 in a thread with suspicious mail.
alter table holds add column risk integer not null default 0;
update holds set risk = 3 where state = 'held' and reasons like '%"canary"%';
update holds set risk = 1 where state = 'held' and risk = 0 and (reasons like '%"risk"%' or message_id in
    (select messages.id from messages join threads on threads.id = messages.thread_id where threads.is_risky = 1));

create index holds_waiting on holds (account_id, risk desc, created_at, message_id) where state = 'held';

create index holds_waiting_by_pod on holds (pod_id, risk desc, created_at, message_id) where state = 'held';

create index holds_waiting_by_inbox on holds (inbox_id, risk desc, created_at, message_id) where state = 'held';
