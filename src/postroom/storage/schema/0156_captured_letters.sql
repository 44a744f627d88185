-- What the server itself would have sent, kept where it sends nothing: the newest, for the operator.
create index letters_captured on letters (created_at, id) where state = 'captured';
