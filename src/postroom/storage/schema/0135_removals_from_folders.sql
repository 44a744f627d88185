-- The MODSEQ at which a message last left a folder: until then nobody has to count what is still there.
alter table folder_inboxes add column removal_modseq bigint not null default 0;
