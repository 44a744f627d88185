-- What an inbox knows of an address that sent junk: 0 nothing, 1 the junk filter found some, 2 a person said so of an
-- email that passed DMARC.
alter table correspondents add column junk bigint not null default 0;
