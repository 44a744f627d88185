alter table search_documents add column realm text not null default '';
