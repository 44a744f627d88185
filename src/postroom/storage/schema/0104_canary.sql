-- What the agent of this inbox reads and never has a reason to write; null: nothing is watched for.
alter table inboxes add column canary text;
