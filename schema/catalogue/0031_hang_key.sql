-- The group of an ANR beside what groups are asked for by, so that lists of groups read one index and no report.
ALTER TABLE hang ADD COLUMN key TEXT NOT NULL DEFAULT '';  -- of its ANR, as in anr
ALTER TABLE hang ADD COLUMN kind TEXT NOT NULL DEFAULT '';
UPDATE hang SET (key, kind)=(SELECT a.key, a.kind FROM anr a WHERE a.project_id=hang.project_id
	AND a.trace_id=hang.trace_id) WHERE anr=1;
DROP INDEX hang_anr_by_day;
DROP INDEX anr_by_key;
DROP INDEX hang_by_day;
-- All that a question of groups or locks can ask for: of days, and of a group.
CREATE INDEX hang_anr_of_day ON hang(project_id, day, key, kind, version_name, device, who, created_ms, trace_id, app,
	build_id, scenario, device_class, os, labels) WHERE anr = 1;
CREATE INDEX hang_anr_of_key ON hang(project_id, key, day, kind, version_name, device, who, created_ms, trace_id, app,
	build_id, scenario, device_class, os, labels) WHERE anr = 1;
CREATE INDEX hang_of_day ON hang(project_id, day, trace_id, version_name, created_ms, device, app, build_id, scenario,
	device_class, os, labels);
