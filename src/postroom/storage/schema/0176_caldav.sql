-- The names that CalDAV clients give to calendars and files, and what they keep with them, as JSON.
-- Removals up to `removals_since` are forgotten; a file without a name has that of its id.
alter table calendars add column path_name text;

alter table calendars add column properties text not null default '{}';

alter table calendars add column removals_since bigint not null default 0;

create unique index calendars_by_path_name on calendars (inbox_id, path_name) where path_name is not null;

alter table calendar_events add column file_name text;

alter table calendar_events add column kept_lines text;

create unique index calendar_events_by_file_name on calendar_events (calendar_id, file_name)
where file_name is not null;

alter table calendar_removals add column file_name text;
