-- How long a document, or what is left of a mail, is as JSON or as bytes. Null: it is stored as it is, else compressed.
alter table messages add column document_bytes integer;

alter table raw_mails add column content_bytes integer;

-- What a message is, for filters that the search index cannot answer: SQL cannot look into a compressed document.
alter table messages add column kept_category text;
