-- What a build is made of: the id of a commit, as hex digits; '' where nobody said.
ALTER TABLE build ADD COLUMN commit_id TEXT NOT NULL DEFAULT '';
CREATE INDEX build_with_commit ON build(project_id, version_name, created_ms, build_id) WHERE commit_id <> '';
