-- Schema 11: tables of ANRs and lock waits named after what they hold.
--
-- anr_trace: traces with an ANR or lock waits.  rollup_generation is the anr_day.generation of the
-- sums that count the row, 0 none.  anr_rename: builds with a new mapping.  anr_day: days with rows
-- in anr_trace.  anr_rollup: sums of ANR groups and of locks by day.

ALTER TABLE hang RENAME TO anr_trace;
ALTER TABLE anr_trace RENAME COLUMN tallied TO rollup_generation;
ALTER TABLE hang_rename RENAME TO anr_rename;
ALTER TABLE hang_day RENAME TO anr_day;
ALTER TABLE hang_tally RENAME TO anr_rollup;
DROP INDEX hang_by_age;
DROP INDEX hang_by_build;
DROP INDEX hang_by_mapping;
DROP INDEX hang_keyed;
DROP INDEX hang_unnamed;
DROP INDEX hang_anr_of_day;
DROP INDEX hang_anr_of_key;
DROP INDEX hang_of_day;
DROP INDEX hang_tallied;
DROP INDEX hang_uncopied;
DROP INDEX hang_day_waiting;
DROP INDEX hang_day_by_age;
CREATE INDEX anr_trace_by_age ON anr_trace(day);
CREATE INDEX anr_trace_by_build ON anr_trace(project_id, build_id, trace_id);
CREATE INDEX anr_trace_by_mapping ON anr_trace(project_id, mapping_id, trace_id) WHERE mapping_id <> '';
CREATE INDEX anr_trace_by_rules ON anr_trace(project_id, keyed, trace_id) WHERE anr = 1;
CREATE INDEX anr_trace_unnamed ON anr_trace(project_id, trace_id) WHERE keyed = 0;
CREATE INDEX anr_trace_of_day_and_key ON anr_trace(project_id, day, key, kind, version_name, device, who, created_ms, trace_id, app,
	build_id, scenario, device_class, os, labels) WHERE anr = 1;
CREATE INDEX anr_trace_of_key ON anr_trace(project_id, key, day, kind, version_name, device, who, created_ms, trace_id, app,
	build_id, scenario, device_class, os, labels) WHERE anr = 1;
CREATE INDEX anr_trace_of_day ON anr_trace(project_id, day, trace_id, version_name, created_ms, device, app, build_id, scenario,
	device_class, os, labels);
CREATE INDEX anr_trace_by_rollup ON anr_trace(project_id, day, rollup_generation);
CREATE INDEX anr_trace_uncopied ON anr_trace(project_id, trace_id) WHERE copied = 0 AND keyed <> 0;
CREATE INDEX anr_day_waiting ON anr_day(project_id, day) WHERE waiting = 1;
CREATE INDEX anr_day_by_age ON anr_day(day);
