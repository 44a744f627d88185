-- Events of several days are few, and are looked for apart in an agenda.
create index calendar_spans_long_of_calendar on calendar_spans (calendar_id, ends_at) where is_long = 1;
