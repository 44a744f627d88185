
create table earlier_uses as
    select email as address, id as owner_id, account_id from users
    union select target, account_id, account_id from notification_targets where kind = 'email'
    union select lower((case when settings like '{%' then settings else '{}' end)::jsonb ->> 'address'), id, account_id from connections where kind = 'imap'
    union select lower((case when settings like '{%' then settings else '{}' end)::jsonb ->> 'username'), id, account_id from connections where kind = 'imap'
    union select jsonb_array_elements_text(coalesce((case when approval like '{%' then approval else '{}' end)::jsonb -> 'reviewers', '[]')), id, id from accounts
    union select jsonb_array_elements_text(coalesce((case when approval like '{%' then approval else '{}' end)::jsonb -> 'reviewers', '[]')), id, account_id from pods
    union select jsonb_array_elements_text(coalesce((case when approval like '{%' then approval else '{}' end)::jsonb -> 'reviewers', '[]')), id, account_id from inboxes
    union select jsonb_array_elements_text(coalesce((case when approval like '{%' then approval else '{}' end)::jsonb -> 'reviewers', '[]')), id, account_id from keys;

insert into address_uses (address, owner_id, account_id)
    select distinct case when strpos(address, '+') > 1 and address not like '"%' then substr(address, 1, strpos(address, '+') - 1) || substr(address, strpos(address, '@')) else address end, owner_id, account_id
    from earlier_uses where address like '%@%';

drop table earlier_uses;
