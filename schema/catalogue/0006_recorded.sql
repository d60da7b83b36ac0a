-- Schema 6: a trace counts on the day on which it was recorded.

-- When it was recorded, by the server's clock; never after created_ms.
ALTER TABLE trace ADD COLUMN recorded_ms INTEGER NOT NULL DEFAULT 0;
UPDATE trace SET recorded_ms = created_ms;
CREATE INDEX trace_by_recorded ON trace(project_id, recorded_ms);
