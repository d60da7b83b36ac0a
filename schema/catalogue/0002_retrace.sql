-- R8's or ProGuard's mapping of a build, beside its method mapping.
ALTER TABLE build ADD COLUMN retrace_sha256 TEXT NOT NULL DEFAULT '';        -- compiled image
ALTER TABLE build ADD COLUMN retrace_source_sha256 TEXT NOT NULL DEFAULT ''; -- the text as it was sent
ALTER TABLE build ADD COLUMN retrace_id TEXT NOT NULL DEFAULT '';            -- its pg_map_id
ALTER TABLE build ADD COLUMN retrace_classes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE build ADD COLUMN retrace_methods INTEGER NOT NULL DEFAULT 0;
ALTER TABLE build ADD COLUMN retrace_malformed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE build ADD COLUMN retrace_ms INTEGER NOT NULL DEFAULT 0;
CREATE INDEX build_by_retrace ON build(retrace_sha256) WHERE retrace_sha256 <> '';
CREATE INDEX build_by_retrace_source ON build(retrace_source_sha256) WHERE retrace_source_sha256 <> '';
