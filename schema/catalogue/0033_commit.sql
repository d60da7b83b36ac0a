-- What a build is made of: the id of a commit, as hex digits; '' where nobody said.
ALTER TABLE build ADD COLUMN commit_id TEXT NOT NULL DEFAULT '';
-- 1: whoever builds said it, 0: an upload did, which any device may send.
ALTER TABLE build ADD COLUMN commit_set INTEGER NOT NULL DEFAULT 0;
CREATE INDEX build_with_commit ON build(project_id, version_name, commit_id) WHERE commit_set = 1;
