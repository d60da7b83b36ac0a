-- Schema 6, as schema/catalogue/0006_recorded.sql, which documents it.
ALTER TABLE trace ADD COLUMN recorded_ms BIGINT NOT NULL DEFAULT 0;
UPDATE trace SET recorded_ms = created_ms;
CREATE INDEX trace_by_recorded ON trace(project_id, recorded_ms);
