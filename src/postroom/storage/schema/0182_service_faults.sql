-- Services that the server asks about email and that do not answer: a row for each node that finds one away, and one
-- without a node once its event was recorded.
create table service_faults (
    name text not null,
    node text not null,
    since bigint not null,
    seen_at bigint not null,
    primary key (name, node)
);
