alter table messages add column category text generated always as (
    case when json_valid(cast(document as text)) then json_extract(cast(document as text), '$.category') end
) virtual;
