-- Which tools of MCP a key called, a row a minute for those that are alike.
create table tool_calls (
    key_id text not null,
    minute bigint not null,
    tool text not null,
    inbox_id text not null,
    outcome text not null,
    account_id text not null,
    count integer not null,
    called_at bigint not null,
    primary key (key_id, minute, tool, inbox_id, outcome)
);

create index tool_calls_by_age on tool_calls (called_at);

create index tool_calls_by_account on tool_calls (account_id);
