-- The folder of a label shows the messages that have it, no longer all of their threads.
-- What would be in no folder then keeps its place, and gets the label.
insert into message_labels (message_id, label, shown, thread_id, inbox_id, created_at)
select messages.id, substr(folder_mails.folder, 7), folders.shown, messages.thread_id, messages.inbox_id,
    messages.created_at
from folder_mails
join messages on messages.id = folder_mails.message_id
join folders on folders.inbox_id = folder_mails.inbox_id and folders.folder = folder_mails.folder
where folder_mails.folder like 'label:%' and not exists (
    select 1 from folder_mails as elsewhere
    where elsewhere.message_id = folder_mails.message_id and elsewhere.folder <> folder_mails.folder
)
on conflict (message_id, label) do nothing;

update messages set was_labelled = 1 where was_labelled = 0
    and id in (select message_id from message_labels where label <> '\seen');

delete from folder_mails where folder like 'label:%' and not exists (
    select 1 from message_labels
    where message_labels.message_id = folder_mails.message_id
    and 'label:' || message_labels.label = folder_mails.folder
);

update folder_inboxes set modseq = modseq + 1;
