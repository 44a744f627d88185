-- Tenants: the audit log, policies and what they stopped, and mail that is kept but was not let in.

-- What was decided, by whom and from where; never changed, but that the same refusal within a minute counts up.
create table audit (
    id text primary key,
    account_id text not null,
    pod_id text,
    inbox_id text,
    actor_type text not null,
    actor_id text not null,
    actor_name text not null,
    address text not null,
    action text not null,
    target text not null,
    before text,
    after text,
    count integer not null,
    minute bigint,
    created_at bigint not null
);

create index audit_by_account on audit (account_id, created_at, id);

create index audit_by_pod on audit (pod_id, created_at, id);

create index audit_by_actor on audit (account_id, actor_id, created_at, id);

create index audit_by_action on audit (account_id, action, created_at, id);

create index audit_by_age on audit (created_at);

create unique index audit_refusals on audit (account_id, actor_id, action, target, minute) where minute is not null;

-- A row for each level and direction that restricts anything; `scope_id` is an account, a pod or an inbox.
create table policies (
    scope_id text not null,
    direction text not null,
    account_id text not null,
    mode text not null,
    rule_count integer not null,
    primary key (scope_id, direction)
);

create table policy_rules (
    id text primary key,
    account_id text not null,
    scope_id text not null,
    direction text not null,
    type text not null,
    value text not null,
    created_at bigint not null
);

create unique index policy_rules_by_value on policy_rules (scope_id, direction, value, type);

create index policy_rules_by_age on policy_rules (scope_id, direction, created_at, id);

create table policy_audit (
    id text primary key,
    account_id text not null,
    pod_id text not null,
    inbox_id text not null,
    action text not null,
    direction text not null,
    address text not null,
    rule text,
    message_id text,
    created_at bigint not null
);

create index policy_audit_by_account on policy_audit (account_id, created_at, id);

create index policy_audit_by_pod on policy_audit (pod_id, created_at, id);

create index policy_audit_by_inbox on policy_audit (inbox_id, created_at, id);

create index policy_audit_by_age on policy_audit (created_at);

-- A message that came in and was not let in has the direction `blocked`. What it answers and who takes part in it is
-- kept here, for the day when it is let in.
create table blocked_mails (
    message_id text primary key,
    names text not null
);

alter table inboxes add column blocked_count integer not null default 0;

drop index messages_by_inbox;

create index messages_by_inbox on messages (inbox_id, created_at, id) where direction <> 'blocked';

-- A key of one inbox names the pod of that inbox as well.
update keys set pod_id = (select inboxes.pod_id from inboxes where inboxes.id = keys.inbox_id) where inbox_id is not null;
