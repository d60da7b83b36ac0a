-- Keys that end by themselves, and secrets that are replaced while the one before works on.
ALTER TABLE api_key ADD COLUMN expires_ms INTEGER NOT NULL DEFAULT 0;   -- 0: only when it is revoked
ALTER TABLE api_key ADD COLUMN seen_from TEXT NOT NULL DEFAULT '';      -- address of the last use
ALTER TABLE api_key ADD COLUMN rotated_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE api_key ADD COLUMN old_hash BLOB;                           -- of the secret before that
ALTER TABLE api_key ADD COLUMN old_until_ms INTEGER NOT NULL DEFAULT 0; -- it works until then
ALTER TABLE api_key ADD COLUMN old_seen_ms INTEGER NOT NULL DEFAULT 0;  -- and was last used then since the rotation
CREATE UNIQUE INDEX api_key_by_old ON api_key(old_hash) WHERE old_hash IS NOT NULL;
