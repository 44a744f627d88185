
create table earlier_uses as
    select email as address, id as owner_id, account_id from users
    union select target, account_id, account_id from notification_targets where kind = 'email'
    union select lower(json_extract(settings, '$.address')), id, account_id from connections where kind = 'imap'
    union select lower(json_extract(settings, '$.username')), id, account_id from connections where kind = 'imap'
    union select value, accounts.id, accounts.id from accounts, json_each(case when json_valid(approval) then approval else '{}' end, '$.reviewers')
    union select value, pods.id, account_id from pods, json_each(case when json_valid(approval) then approval else '{}' end, '$.reviewers')
    union select value, inboxes.id, account_id from inboxes, json_each(case when json_valid(approval) then approval else '{}' end, '$.reviewers')
    union select value, keys.id, account_id from keys, json_each(case when json_valid(approval) then approval else '{}' end, '$.reviewers');

insert into address_uses (address, owner_id, account_id)
    select distinct case when instr(address, '+') > 1 and address not like '"%' then substr(address, 1, instr(address, '+') - 1) || substr(address, instr(address, '@')) else address end, owner_id, account_id
    from earlier_uses where address like '%@%';

drop table earlier_uses;
