-- Calendars: every inbox has a default one, whose id has the digits of the inbox's.
create table calendars (
    id text primary key,
    account_id text not null,
    pod_id text not null,
    inbox_id text not null,
    name text not null,
    time_zone text not null,
    working_hours text not null, -- JSON
    is_default integer not null,
    reminder_minutes integer, -- before the start; null: no calendar.starting
    feed_hash text, -- SHA-256 of the secret of its private link
    source_url text, -- a feed that it follows
    source_due_at bigint,
    source_error text,
    version bigint not null default 0, -- counts the changes of its events
    event_count integer not null default 0,
    created_at bigint not null
);

create index calendars_by_inbox on calendars (inbox_id, is_default, created_at, id);

create index calendars_by_pod on calendars (pod_id, inbox_id, is_default, created_at, id);

create index calendars_by_account on calendars (account_id, inbox_id, is_default, created_at, id);

create unique index calendars_by_feed on calendars (feed_hash) where feed_hash is not null;

create index calendars_by_source on calendars (source_due_at) where source_due_at is not null;

insert into calendars (id, account_id, pod_id, inbox_id, name, time_zone, working_hours, is_default, reminder_minutes, created_at)
select 'cal_' || substr(id, 5), account_id, pod_id, id, 'Calendar', 'UTC',
    '{"mon":[["09:00","17:00"]],"tue":[["09:00","17:00"]],"wed":[["09:00","17:00"]],"thu":[["09:00","17:00"]],"fri":[["09:00","17:00"]]}',
    1, 10, created_at
from inboxes;

-- An event, or a series with its exceptions, as `content`.
create table calendar_events (
    id text primary key,
    account_id text not null,
    pod_id text not null,
    inbox_id text not null,
    calendar_id text not null,
    uid_key text not null, -- the uid, or the hash of a long one
    content text not null, -- JSON
    status text not null,
    own_response text, -- null: its own event
    message_id text, -- the email that made or changed it last
    thread_id text,
    verdict text,
    proposals text not null, -- JSON: counter-proposals of attendees
    waits_for text, -- the message that must leave before the last change counts
    before text, -- JSON: as it was before that change; null: it is new
    seen_by text, -- null: a change that no person has seen yet
    starts_at bigint not null,
    repeats integer not null,
    spans_since bigint not null, -- of a series: the spans in between are stored
    spans_until bigint, -- null: all later ones
    spans_due_at bigint, -- when to store more of them
    version bigint not null,
    created_at bigint not null,
    updated_at bigint not null
);

create unique index calendar_events_by_uid on calendar_events (calendar_id, uid_key);

create index calendar_events_by_uid_of_inbox on calendar_events (inbox_id, uid_key);

create index calendar_events_by_start on calendar_events (calendar_id, starts_at, id);

create index calendar_events_by_version on calendar_events (calendar_id, version);

create index calendar_events_by_thread on calendar_events (thread_id) where thread_id is not null;

create index calendar_events_by_wait on calendar_events (waits_for) where waits_for is not null;

create index calendar_events_by_repetition on calendar_events (calendar_id, id) where repeats = 1;

create index calendar_events_due on calendar_events (spans_due_at) where spans_due_at is not null;

-- When an event takes place. One without a calendar keeps the time of an attendee of this server free.
create table calendar_spans (
    event_id text not null,
    calendar_id text not null,
    inbox_id text not null,
    starts_at bigint not null,
    ends_at bigint not null,
    recurrence_id text not null,
    number integer not null, -- of the exception; -1: none
    busy integer not null, -- 0 free to 4 busy
    is_long integer not null,
    tell_at bigint -- when the log gets its next event about it
);

create index calendar_spans_by_calendar on calendar_spans (calendar_id, starts_at, ends_at);

create index calendar_spans_by_inbox on calendar_spans (inbox_id, starts_at, ends_at, busy);

create index calendar_spans_by_event on calendar_spans (event_id, starts_at);

create index calendar_spans_long on calendar_spans (inbox_id, ends_at) where is_long = 1;

create index calendar_spans_to_tell on calendar_spans (tell_at) where tell_at is not null;

-- Removed events, for clients that ask what has changed since a version.
create table calendar_removals (
    inbox_id text not null,
    calendar_id text not null,
    version bigint not null,
    uid_key text not null,
    event_id text not null,
    removed_at bigint not null
);

create index calendar_removals_by_version on calendar_removals (calendar_id, version);
