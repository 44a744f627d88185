-- Why somebody added the rule, in their words.
alter table policy_rules add column reason text;
