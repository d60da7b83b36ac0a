-- Regressions of another kind: methods that the version before did not have.
ALTER TABLE regression ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;      -- 1: new in head
ALTER TABLE regression ADD COLUMN share_ppm INTEGER NOT NULL DEFAULT 0; -- of head's traces that have it
