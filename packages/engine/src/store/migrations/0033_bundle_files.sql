-- Files that bundles require besides their code, once, by content hash. Never updated.
CREATE TABLE bundled_file (
  hash        text PRIMARY KEY,
  content     bytea NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT now()
);

-- Which bundle requires which file. Its place in the bundle is part of the bundle's code.
CREATE TABLE bundle_file (
  bundle_hash text NOT NULL REFERENCES bundle ON DELETE CASCADE,
  file_hash   text NOT NULL REFERENCES bundled_file,
  PRIMARY KEY (bundle_hash, file_hash)
);
CREATE INDEX bundle_file_file ON bundle_file (file_hash);
