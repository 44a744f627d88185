-- The trace (W3C) that the request of a decision belonged to.
alter table audit add column trace_id text;
