-- What lists show of a message whose document is large: the same fields, with short texts and few addresses.
create table message_outlines (
    message_id text primary key,
    -- The size of the document as JSON. In `messages` it stands behind the document, which SQLite has to walk through.
    document_bytes integer not null,
    outline bytea not null
);

-- Large messages from before, whose outlines are made in the background.
create table outlines_due (
    message_id text primary key
);

insert into outlines_due (message_id) select id from messages where coalesce(document_bytes, length(document)) > 32768;
