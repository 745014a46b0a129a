-- Code that many bundles share (the SDK's part of each), once, by content hash. Never updated.
CREATE TABLE prelude (
  hash        text PRIMARY KEY,
  -- What its code declares.
  names       text[] NOT NULL,
  code        text NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT now()
);

-- What a bundle runs is `head`, then its prelude, then `code`. Those stored before are whole.
ALTER TABLE bundle
  ADD COLUMN head         text NOT NULL DEFAULT '',
  ADD COLUMN prelude_hash text REFERENCES prelude;
CREATE INDEX bundle_prelude ON bundle (prelude_hash);
