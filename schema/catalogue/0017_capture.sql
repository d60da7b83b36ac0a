-- Uploads that name the capture rule they follow, by day (whole days since 1970, UTC).
-- rule '' counts those that name one which is no longer there.
CREATE TABLE capture_day (
  project_id TEXT NOT NULL,
  rule TEXT NOT NULL,
  day INTEGER NOT NULL,
  traces INTEGER NOT NULL,
  devices INTEGER NOT NULL, -- different ones, of those that say who they are
  PRIMARY KEY (project_id, rule, day)
) WITHOUT ROWID;

-- Which devices are counted already; a hash of what the device calls itself, kept for two days.
CREATE TABLE capture_device (
  day INTEGER NOT NULL,
  project_id TEXT NOT NULL,
  rule TEXT NOT NULL,
  device INTEGER NOT NULL,
  PRIMARY KEY (day, project_id, rule, device)
) WITHOUT ROWID;
