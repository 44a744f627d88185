-- At which hour of its time zone a target gets the daily briefing, and when the next one is due.
alter table notification_targets add column briefing_hour integer not null default 8;

alter table notification_targets add column time_zone text not null default 'UTC';

alter table notification_targets add column briefing_at bigint;

create index notification_targets_briefed on notification_targets (briefing_at) where briefing_at is not null;
