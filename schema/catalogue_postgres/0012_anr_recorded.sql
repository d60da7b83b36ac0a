-- Schema 12, as schema/catalogue/0012_anr_recorded.sql, which documents it.
ALTER TABLE anr_trace RENAME COLUMN created_ms TO recorded_ms;
UPDATE anr_trace SET recorded_ms = coalesce((SELECT t.recorded_ms FROM trace t WHERE t.project_id = anr_trace.project_id
	AND t.trace_id = anr_trace.trace_id), day * 86400000)
	WHERE day <> recorded_ms / 86400000 OR EXISTS(SELECT 1 FROM trace t WHERE t.project_id = anr_trace.project_id
	AND t.trace_id = anr_trace.trace_id AND t.recorded_ms <> t.created_ms);
UPDATE anr_day SET generation = generation + 1, waiting = 1;
