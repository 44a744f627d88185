-- The words of a mail stand once, in the document of its message.

-- Where in `document` the reply text begins, and how many bytes of it there are. Null: `document` has it as a field of its own.
alter table messages add column reply_at integer;

alter table messages add column reply_bytes integer;

-- Where in `content` the text and the HTML of the document belong, which are left out there. Null: nothing is left out.
alter table raw_mails add column text_at integer;

alter table raw_mails add column html_at integer;

-- Null: `payload` is whole. Else it is without its texts, which are those of the message; the numbers are of the files whose text belongs to it.
alter table events add column text_files text;

-- Rows of earlier versions that are being brought into this form, and how far that has come.
create table conversions (
    name text primary key,
    cursor text not null
);

insert into conversions (name, cursor) values ('messages', ''), ('events', '');
