-- name: EventInsert :exec
INSERT INTO events (id, organizer_id, name, venue, starts_at, timezone, currency, payment, status, sale_starts_at, sale_ends_at)
VALUES (@id, @organizer_id, @name, @venue, @starts_at, @timezone, @currency, @payment, @status, @sale_starts_at, @sale_ends_at);

-- name: CategoryInsert :exec
INSERT INTO categories (event_id, id, name)
SELECT @event_id::bigint, unnest(@ids::integer[]), unnest(@names::text[]);

-- name: AreaInsert :exec
INSERT INTO areas (event_id, id, name, category_id, first_seat, capacity)
VALUES (@event_id, @id, @name, @category_id, @first_seat, @capacity);

-- name: EventGet :one
SELECT *, statement_timestamp()::timestamptz AS server_time FROM events WHERE id = @id;

-- name: EventList :many
-- Drafts are for their organizer alone; a caller without an organizer sees every organizer's public events.
SELECT *, statement_timestamp()::timestamptz AS server_time FROM events
WHERE (sqlc.narg('organizer_id')::bigint IS NULL OR organizer_id = sqlc.narg('organizer_id'))
  AND (status <> 'draft' OR organizer_id = sqlc.narg('organizer_id'))
  AND (starts_at, id) > (@after_start::timestamptz, @after_id::bigint)
ORDER BY starts_at, id
LIMIT @max_rows;

-- name: EventLockForSale :one
-- Waits for a pause or cancel that is under way, and makes later ones wait for this sale.
SELECT id, organizer_id, status, payment, currency, timezone,
       (sale_starts_at <= statement_timestamp())::boolean AS sale_started,
       (sale_ends_at <= statement_timestamp())::boolean AS sale_ended
FROM events WHERE id = @id FOR SHARE;

-- name: EventUpdate :one
UPDATE events SET
    name = coalesce(sqlc.narg('name'), name),
    venue = coalesce(sqlc.narg('venue'), venue),
    starts_at = coalesce(sqlc.narg('starts_at'), starts_at),
    status = coalesce(sqlc.narg('status'), status),
    sale_starts_at = coalesce(sqlc.narg('sale_starts_at'), sale_starts_at),
    sale_ends_at = coalesce(sqlc.narg('sale_ends_at'), sale_ends_at)
WHERE id = @id AND organizer_id = @organizer_id AND status = ANY(@from_status::text[])
RETURNING *, statement_timestamp()::timestamptz AS server_time;

-- name: AreaGet :one
SELECT * FROM areas WHERE event_id = @event_id AND id = @id;

-- name: EventAvailability :many
-- One row per section (or area), category and price: how many of its seats are in which state now.
SELECT s.section, s.area_id, c.name AS category, s.price,
       count(*) AS total,
       count(*) FILTER (WHERE s.buyer IS NOT NULL) AS booked,
       count(*) FILTER (WHERE s.block_id IS NOT NULL) AS blocked,
       count(*) FILTER (WHERE s.held_until > statement_timestamp()) AS held,
       min(s.id)::integer AS first_seat
FROM seats s JOIN categories c ON c.event_id = s.event_id AND c.id = s.category_id
WHERE s.event_id = @event_id
GROUP BY s.section, s.area_id, c.name, s.price
ORDER BY min(s.id);

-- name: EventToUnwind :one
-- Any of them: one that cannot be ended must not keep the others.
SELECT id FROM events WHERE status = 'cancelled' AND unwound_at IS NULL ORDER BY random() LIMIT 1;

-- name: EventUnwound :exec
UPDATE events SET unwound_at = statement_timestamp() WHERE id = @id AND status = 'cancelled';

-- name: EventChangeLimits :exec
SELECT set_config('lock_timeout', @lock_ms::text, true), set_config('statement_timeout', @statement_ms::text, true);

-- name: EventsLock :exec
-- Sales of a crowd share the event's row without a gap, and Postgres lets new sharers pass one who waits to write it: a pause took seconds.
-- The table's lock has a queue. It stops new sales of every event, so its wait is shorter than a sale's own.
LOCK TABLE events IN EXCLUSIVE MODE;
