-- name: FeedInsert :exec
INSERT INTO feeds (event_id, epoch) VALUES (@event_id, @epoch);

-- name: FeedsWaiting :many
-- Events with changes that have no number yet, which the publisher may number. One probe of an index for each event: how many changes wait
-- does not matter, and an idle database costs a single probe. The order is that index's, so that no other one is taken.
WITH RECURSIVE waiting AS (
    (SELECT l.event_id FROM seat_ledger l WHERE l.seq IS NULL ORDER BY l.event_id, l.at LIMIT 1)
    UNION ALL
    SELECT n.event_id FROM waiting w, LATERAL (
        SELECT l.event_id FROM seat_ledger l WHERE l.seq IS NULL AND l.event_id > w.event_id ORDER BY l.event_id, l.at LIMIT 1) n
)
SELECT f.event_id FROM waiting w JOIN feeds f ON f.event_id = w.event_id
WHERE f.publisher = @publisher::uuid OR f.leased_until <= statement_timestamp()
LIMIT @max_rows;

-- name: FeedLock :one
-- Nobody waits for a publisher: who cannot have the row leaves the event to whoever has it.
SELECT seq FROM feeds WHERE event_id = @event_id FOR UPDATE SKIP LOCKED;

-- name: FeedPick :many
-- The oldest changes that have no number, and what their seats have before them: a statement that has waited for a seat is older than what
-- it waited for, and a seat's later change must not get the lower number. In the order in which they are numbered. It is a statement of
-- its own after FeedLock: one that locks and reads at once would not see what the publisher before has numbered.
-- OFFSET 0 and the filter outside of it: the seat's rows are looked up by their whole key, however little the planner knows.
WITH oldest AS MATERIALIZED (
    SELECT l.seat_id, l.fence FROM seat_ledger l
    WHERE l.event_id = @event_id AND l.seq IS NULL ORDER BY l.at LIMIT @max_rows
), tops AS MATERIALIZED (
    SELECT o.seat_id, max(o.fence) AS fence FROM oldest o GROUP BY o.seat_id
), picked AS (
    SELECT n.seat_id, n.fence, max(n.at) OVER (PARTITION BY n.seat_id ORDER BY n.fence) AS at
    FROM tops t, LATERAL (
        SELECT l.seat_id, l.fence, l.at, l.seq FROM seat_ledger l
        WHERE l.event_id = @event_id AND l.seat_id = t.seat_id AND l.fence <= t.fence OFFSET 0) n
    WHERE n.seq IS NULL
)
SELECT p.seat_id, p.fence FROM picked p ORDER BY p.at, p.seat_id, p.fence LIMIT @max_rows;

-- name: FeedNumber :execrows
-- By the whole key: nobody else numbers while the feed is locked.
UPDATE seat_ledger l SET seq = n.seq
FROM (SELECT unnest(@seat_ids::integer[]) AS seat_id, unnest(@fences::bigint[]) AS fence, unnest(@seqs::bigint[]) AS seq) n
WHERE l.event_id = @event_id AND l.seat_id = n.seat_id AND l.fence = n.fence;

-- name: FeedRaise :exec
UPDATE feeds SET seq = @seq, publisher = @publisher::uuid, leased_until = statement_timestamp() + @lease::interval
WHERE event_id = @event_id;

-- name: FeedHeads :many
-- Where feeds are. layout and released tell versions of what is shown apart: channels that have released themselves are more, never
-- others, as long as the layout is the same. waiting: changes have been committed that have no number yet.
SELECT f.event_id, f.epoch, f.seq, e.layout, statement_timestamp()::timestamptz AS server_time,
       (SELECT count(*) FROM channels c
        WHERE c.event_id = f.event_id AND e.starts_at - c.release_before <= statement_timestamp())::integer AS released,
       coalesce((SELECT true FROM seat_ledger l WHERE l.event_id = f.event_id AND l.seq IS NULL ORDER BY l.at LIMIT 1), false)::boolean AS waiting
FROM feeds f JOIN events e ON e.id = f.event_id WHERE f.event_id = ANY(@event_ids::bigint[]);

-- name: FeedKnows :one
-- Whether the ledger has the change of a number: what is older than the feed it has not.
SELECT EXISTS (SELECT 1 FROM seat_ledger WHERE event_id = @event_id AND seq = @seq::bigint AND seq > 0)::boolean;

-- name: FeedCells :many
-- What the changes from after up to upto made of each seat in the end. A hold's end is the hold's: it may have been extended since.
WITH last AS MATERIALIZED (
    SELECT DISTINCT ON (l.seat_id) l.seat_id, l.fence, l.action, l.ref FROM seat_ledger l
    WHERE l.event_id = @event_id AND l.seq > @after::bigint AND l.seq <= @upto::bigint AND l.seq > 0
    ORDER BY l.seat_id, l.fence DESC
)
SELECT n.seat_id, n.fence, s.area_id,
       (CASE n.action WHEN 'held' THEN 1 WHEN 'sold' THEN 2 WHEN 'blocked' THEN 3
             ELSE CASE WHEN @any_channel::boolean OR coalesce(s.channel_id, 0) = ANY(@channels::integer[]) THEN 0 ELSE 3 END END)::smallint AS state,
       (CASE WHEN n.action = 'held' THEN (
           SELECT 1000 * floor(extract(epoch FROM h.expires_at)) FROM holds h WHERE h.event_id = @event_id AND h.id = n.ref) ELSE 0 END)::bigint AS until_ms
FROM last n JOIN seats s ON s.event_id = @event_id AND s.id = n.seat_id
ORDER BY n.seat_id;

-- name: FeedStates :one
-- What each numbered seat is to the caller: four times its id, and the state. In no order.
SELECT ARRAY(
    SELECT 4 * s.id + CASE WHEN s.buyer IS NOT NULL THEN 2
                           WHEN s.block_id IS NOT NULL THEN 3
                           WHEN s.held_until > statement_timestamp() THEN 1
                           WHEN NOT coalesce(s.channel_id, 0) = ANY(@channels::integer[]) AND NOT @any_channel::boolean THEN 3
                           ELSE 0 END
    FROM seats s WHERE s.event_id = @event_id AND s.area_id IS NULL)::integer[] AS states;

-- name: FeedHeld :many
-- By the second in which their holds end.
SELECT (1000 * floor(extract(epoch FROM s.held_until)))::bigint AS until_ms, array_agg(s.id ORDER BY s.id)::integer[] AS ids
FROM seats s WHERE s.event_id = @event_id AND s.area_id IS NULL AND s.held_until > statement_timestamp()
GROUP BY 1 ORDER BY 1;

-- name: FeedAreas :many
-- How many places of areas, of all if none is named, are free for the caller.
SELECT a.id, (
    SELECT count(*) FROM seats s
    WHERE s.event_id = a.event_id AND s.id >= a.first_seat AND s.id < a.beyond AND s.area_id = a.id
      AND s.buyer IS NULL AND s.block_id IS NULL AND (s.hold_id IS NULL OR s.held_until <= statement_timestamp())
      AND (@any_channel::boolean OR coalesce(s.channel_id, 0) = ANY(@channels::integer[]))
)::bigint AS free
FROM areas a WHERE a.event_id = @event_id AND (sqlc.narg('ids')::integer[] IS NULL OR a.id = ANY(sqlc.narg('ids')))
ORDER BY a.id;

-- name: MapVersion :one
SELECT layout, plan_id, plan_version, organizer_id FROM events WHERE id = @event_id;

-- name: MapSeats :many
-- What is drawn of numbered seats, row by row. Those that the plan has no longer have no spot.
SELECT s.id, s.section, s.row_label, s.number, s.category_id, l.line, l.x, l.y, l.attributes, l.tags
FROM spots l JOIN seats s ON s.event_id = l.event_id AND s.id = l.seat_id
WHERE l.event_id = @event_id
ORDER BY min(s.id) OVER (PARTITION BY s.section), l.line, l.run, l.pos;

-- name: MapAreas :many
SELECT id, name, category_id, capacity FROM areas WHERE event_id = @event_id ORDER BY id;
