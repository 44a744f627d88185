-- An id that the client chose: the same one again returns the template that is there.
alter table templates add column client_id text;

create unique index templates_by_client_id on templates (inbox_id, client_id) where client_id is not null;
