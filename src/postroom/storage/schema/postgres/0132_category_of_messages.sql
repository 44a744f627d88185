create function category(messages) returns text language sql stable
    as $$ select cast(convert_from($1.document, 'UTF8') as json) ->> 'category' $$;
