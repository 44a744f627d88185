-- The address of an external mailbox counts after a login that worked: until then it was only a claim.
update inboxes set external_address = null, connection_id = null
    where id in (select inbox_id from connections where kind = 'imap' and uid_validity is null)
    or connection_id in (select id from connections where uid_validity is null);
