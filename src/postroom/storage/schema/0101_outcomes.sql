-- Which server took a mail over, and whether it was reached by TLS; null where none outside did.
alter table attempts add column host text;

alter table attempts add column has_tls integer;

-- What is due is walked through in its order, or lane by lane where a lane has a backlog.
drop index deliveries_by_due;

create index deliveries_by_due on deliveries (kind, due_at, id, lane) where state = 'pending';

create index deliveries_by_lane on deliveries (kind, lane, due_at, id) where state = 'pending';

-- With the address, so that finding those who bear a name does not walk through all whom an inbox knows.
drop index correspondents_by_name;

create index correspondents_by_name on correspondents (inbox_id, name, address) where is_trusted = 1 and name <> '';

alter table checks rename to examinations;
