-- Why it could not be done when its time came; who asked for it is told until it is dismissed.
alter table delayed_actions add column refused text;
