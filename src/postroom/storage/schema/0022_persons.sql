-- Whether a session was opened with a key, which it then is; and the keys that a sender's key comes from.

alter table sessions add column by_key integer not null default 1;

alter table holds add column key_lineage text not null default '';

update holds set key_lineage = coalesce((select lineage from keys where keys.id = holds.key_id), '');
