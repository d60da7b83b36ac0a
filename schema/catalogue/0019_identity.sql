-- People as an OpenID provider knows them: by issuer and subject, never by a name or an address,
-- which may become somebody else's.
CREATE TABLE identity (
	issuer TEXT NOT NULL,
	subject TEXT NOT NULL,
	user_id TEXT NOT NULL REFERENCES user ON DELETE CASCADE,
	created_ms INTEGER NOT NULL,
	PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX identity_by_user ON identity(user_id, issuer);

-- Whoever may not sign in for now, in no way, but keeps account and roles.
ALTER TABLE user ADD COLUMN is_disabled INTEGER NOT NULL DEFAULT 0;
