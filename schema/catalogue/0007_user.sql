-- People: an account is of the server, a role of a project.
CREATE TABLE user (
	user_id TEXT PRIMARY KEY,
	name TEXT NOT NULL UNIQUE,             -- what one signs in with
	password TEXT NOT NULL DEFAULT '',     -- argon2id with salt and cost; '': none
	is_admin INTEGER NOT NULL DEFAULT 0,   -- of the server
	created_ms INTEGER NOT NULL,
	last_seen_ms INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE member (
	user_id TEXT NOT NULL REFERENCES user ON DELETE CASCADE,
	project_id TEXT NOT NULL REFERENCES project ON DELETE CASCADE,
	scope INTEGER NOT NULL,                -- 2 viewer, 3 editor, 4 admin (auth.h)
	PRIMARY KEY (user_id, project_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX member_by_project ON member(project_id, user_id);

-- Sessions made before are over: they belonged to nobody, or were the key itself.
DROP TABLE session;
CREATE TABLE session (
	hash BLOB PRIMARY KEY,
	user_id TEXT REFERENCES user ON DELETE CASCADE, -- NULL: by a link or a key
	project_id TEXT, key_id TEXT,                   -- NULL: not by a key
	created_ms INTEGER NOT NULL,
	seen_ms INTEGER NOT NULL,
	idle_ms INTEGER NOT NULL,                       -- it is over when unseen for so long
	expires_ms INTEGER NOT NULL,
	FOREIGN KEY (project_id, key_id) REFERENCES api_key ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX session_by_user ON session(user_id) WHERE user_id IS NOT NULL;
CREATE INDEX session_by_key ON session(project_id, key_id) WHERE key_id IS NOT NULL;
