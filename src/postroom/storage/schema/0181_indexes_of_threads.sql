-- One index for lists by state and by read flag: every index costs a page of its own with each email.
drop index threads_by_read_flag;

drop index threads_by_pod;

drop index threads_by_account;

drop index threads_by_state_of_inbox;

drop index threads_by_state_of_pod;

drop index threads_by_state_of_account;

create index threads_by_work_of_inbox on threads (inbox_id, is_read, state, last_message_at, id, assignee_id);

create index threads_by_work_of_pod on threads (pod_id, is_read, state, last_message_at, id, assignee_id);

create index threads_by_work_of_account on threads (account_id, is_read, state, last_message_at, id, assignee_id);
