
create or replace function category(messages) returns text language sql stable
    as $$ select coalesce($1.kept_category, case when $1.document_bytes is null then cast(convert_from($1.document, 'UTF8') as json) ->> 'category' end) $$;
