-- Texts that mails of an inbox are written from. `content` is JSON: subject, body, bodyHtml.
create table templates (
    id text primary key,
    account_id text not null,
    pod_id text not null,
    inbox_id text not null,
    name text not null,
    content text not null,
    created_at bigint not null,
    updated_at bigint not null
);

create unique index templates_by_name on templates (inbox_id, name);
create index templates_by_account on templates (account_id, created_at, id);
create index templates_by_pod on templates (pod_id, created_at, id);
