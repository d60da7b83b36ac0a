-- Jobs are claimed by project in turn, and the bytes that wait are counted.
ALTER TABLE job ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0; -- of the upload
UPDATE job SET bytes=(SELECT upload_bytes FROM trace WHERE trace.project_id=job.project_id AND trace.trace_id=job.trace_id);
DROP INDEX job_by_due;
CREATE INDEX job_by_project ON job(claimed, project_id, due_ms);
