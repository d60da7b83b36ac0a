-- Traces and uploads that are kept for a time.
ALTER TABLE trace ADD COLUMN upload_kept INTEGER NOT NULL DEFAULT 1; -- 0: only what was decoded is left
CREATE INDEX trace_with_upload ON trace(project_id, created_ms, trace_id) WHERE upload_kept=1;
