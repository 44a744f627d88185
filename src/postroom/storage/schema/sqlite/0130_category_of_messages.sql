alter table messages add column category text
    generated always as (json_extract(cast(document as text), '$.category')) virtual;
