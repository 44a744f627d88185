
alter table messages drop column category;

alter table messages add column category text generated always as (
    coalesce(kept_category, case when document_bytes is null and json_valid(cast(document as text))
        then json_extract(cast(document as text), '$.category') end)
) virtual;
