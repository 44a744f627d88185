-- What is behind `parsed_text` where the text of a file is longer than a message shows.
alter table attachments add column text_rest text;
