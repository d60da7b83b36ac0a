-- The group of a trace's ANR, '' none; '?' it has one that was decoded before groups were kept.  Of
-- each group the first stays.  State 4: what was decoded from the upload went, and is made again when asked for.
ALTER TABLE trace ADD COLUMN anr TEXT NOT NULL DEFAULT '';
UPDATE trace SET anr='?' WHERE state=2 AND (format='anr' OR EXISTS (SELECT 1 FROM part p
	WHERE p.project_id=trace.project_id AND p.trace_id=trace.trace_id AND p.part='anr'));
CREATE INDEX trace_of_anr ON trace(project_id, anr, created_ms, trace_id) WHERE anr<>'';
CREATE INDEX trace_with_anr ON trace(project_id, created_ms, trace_id) WHERE anr<>'';
CREATE INDEX trace_decoded ON trace(project_id, ready_ms, trace_id) WHERE state=2 AND upload_kept=1;
