-- 1: a label was put on it once. Of all others no list has to ask for labels.
alter table messages add column was_labelled integer not null default 0;

update messages set was_labelled = 1 where id in (select message_id from message_labels where label <> '\seen');
