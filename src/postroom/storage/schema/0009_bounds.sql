-- Every question has an index that leads straight to its rows, and what one node does for all has a holder.

-- Kinds are few: who wants all of them looks once for each.
create index events_by_kind on events (account_id, kind, position);

drop index events_by_inbox;

create index events_by_inbox_and_kind on events (inbox_id, kind, position);

drop index events_by_pod;

create index events_by_pod_and_kind on events (account_id, pod_id, kind, position);

create index deliveries_by_state on deliveries (account_id, kind, state, created_at, id);

create index domains_by_name on domains (name);

-- With the lane, so that what waits in a full lane is passed over without a look at its row.
drop index deliveries_by_due;

create index deliveries_by_due on deliveries (kind, due_at, lane, id) where state = 'pending';

-- What has expired, without the mail that stays.
drop index deliveries_by_end;

create index deliveries_by_end on deliveries (kind, finished_at) where finished_at is not null;

create index inbox_creations_by_age on inbox_creations (created_at);

-- Duties of the whole house, each held by one node for a while. /ready writes its own row, to see that it can.
create table duties (
    name text primary key,
    holder text not null,
    held_until bigint not null
);
