
create or replace function category(messages) returns text language sql stable
    as $$ select coalesce($1.kept_category, case when $1.document_bytes is null then cast(convert_from($1.document, 'UTF8') as json) ->> 'category' end) $$;

-- What is compressed already is not tried again.
alter table messages alter column document set storage external;

alter table raw_mails alter column content set storage external;
