-- Schema 12: an ANR is first and last seen when it was recorded, as its day says.

ALTER TABLE anr_trace RENAME COLUMN created_ms TO recorded_ms;
-- Of a deleted trace only the day is known.
UPDATE anr_trace SET recorded_ms = coalesce((SELECT t.recorded_ms FROM trace t WHERE t.project_id = anr_trace.project_id
	AND t.trace_id = anr_trace.trace_id), day * 86400000)
	WHERE day <> recorded_ms / 86400000 OR EXISTS(SELECT 1 FROM trace t WHERE t.project_id = anr_trace.project_id
	AND t.trace_id = anr_trace.trace_id AND t.recorded_ms <> t.created_ms);
UPDATE anr_day SET generation = generation + 1, waiting = 1;
