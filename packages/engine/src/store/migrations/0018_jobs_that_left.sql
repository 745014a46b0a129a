-- Who ended lately: asked with every renewal of a lease.
CREATE INDEX job_ended ON job (ended_at) WHERE state <> 'running';
