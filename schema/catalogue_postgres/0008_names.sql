-- Schema 8, as schema/catalogue/0008_names.sql, which documents it.
ALTER TABLE trace RENAME COLUMN folded TO rollup_state;
ALTER TABLE trace RENAME COLUMN hung TO anr_state;
ALTER TABLE alert RENAME COLUMN told TO notified;
ALTER TABLE alert RENAME COLUMN told_ms TO notified_ms;
DROP INDEX trace_unfolded;
DROP INDEX trace_unhung;
CREATE INDEX trace_rollup_todo ON trace(project_id, created_ms, trace_id) WHERE state = 2 AND rollup_state = 0;
CREATE INDEX trace_anr_todo ON trace(project_id, trace_id) WHERE state = 2 AND anr_state = 0;
