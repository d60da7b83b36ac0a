-- SHA-256 of the trace file, so that damage on disk is noticed; '' of those decoded before this.
ALTER TABLE trace ADD COLUMN file_sha256 TEXT NOT NULL DEFAULT '';
