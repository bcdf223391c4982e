-- +goose Up

-- Rows of the ledger become visible in the order of their commits, which no id and no time of theirs tells. So a publisher numbers them
-- after they were committed: seq is null until then, and 0 in rows that are older than the feed.
ALTER TABLE seat_ledger ADD seq bigint DEFAULT 0;
ALTER TABLE seat_ledger ALTER seq DROP DEFAULT;
CREATE INDEX seat_ledger_waiting ON seat_ledger (event_id, at) WHERE seq IS NULL;
CREATE UNIQUE INDEX seat_ledger_feed ON seat_ledger (event_id, seq) WHERE seq > 0;

-- What has been numbered leaves dead entries at the front of the index of what waits, where every look at it begins.
ALTER TABLE seat_ledger SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000);

-- Whoever locks a row numbers the event's changes, so two never do. The lease only keeps others from trying while a publisher lives.
CREATE TABLE feeds (
    event_id     bigint PRIMARY KEY REFERENCES events,
    epoch        bigint NOT NULL CHECK (epoch > 0), -- random: another one says that all numbers are new
    seq          bigint NOT NULL DEFAULT 0,         -- the highest that was given
    publisher    uuid,
    leased_until timestamptz NOT NULL DEFAULT '2000-01-01Z'
) WITH (fillfactor = 50);

-- Events that have a history begin at 1, which no row of it has: nobody can replay them from their beginning.
INSERT INTO feeds (event_id, epoch, seq)
SELECT e.id, 1 + floor(random() * 1e12)::bigint, EXISTS (SELECT 1 FROM seat_ledger l WHERE l.event_id = e.id)::integer FROM events e;

-- +goose Down
DROP TABLE feeds;
ALTER TABLE seat_ledger RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold);
ALTER TABLE seat_ledger DROP COLUMN seq;
