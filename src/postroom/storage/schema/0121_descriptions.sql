-- What mail programs list of a mail, as IMAP writes it: made when it comes, where the server has IMAP, else when one asks.
alter table raw_mails add column envelope bytea;

alter table mail_flags add column envelope bytea;

alter table mail_flags add column structure bytea;
