-- How an email that an agent wrote says so, as JSON; null: the level above.
alter table accounts add column disclosure text;

alter table pods add column disclosure text;

alter table inboxes add column disclosure text;

-- The words that an agent gave a draft, to see how much of them a person kept; null: no agent wrote it.
alter table drafts add column agent_text text;
