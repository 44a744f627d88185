-- Certificates that the server gets itself. Every node reads them here.
create table acme_accounts (
  directory text primary key,
  key text not null,
  url text not null,
  created_at bigint not null
);
create table acme_certificates (
  name text primary key,
  names text not null,
  chain text,
  key text,
  issued_at bigint,
  expires_at bigint,
  due_at bigint not null,
  failures integer not null default 0,
  error text
);
-- Answers to an authority's questions: any node may be asked.
create table acme_challenges (
  token text primary key,
  name text not null,
  type text not null,
  key_authorization text not null,
  expires_at bigint not null
);
create index acme_challenges_by_name on acme_challenges (name);
