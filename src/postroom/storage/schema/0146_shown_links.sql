-- Links of reviewers that came into an inbox, where agents read: they decide nothing any more.
create table shown_links (
    token_hash text primary key,
    shown_at bigint not null
);

create index shown_links_by_age on shown_links (shown_at);
