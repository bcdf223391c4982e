-- name: EventInsert :exec
INSERT INTO events (id, organizer_id, name, venue, starts_at, timezone, currency, payment, status, sale_starts_at, sale_ends_at,
                    plan_id, plan_version, orphan_rule, whole_tables, order_limit)
VALUES (@id, @organizer_id, @name, @venue, @starts_at, @timezone, @currency, @payment, @status, @sale_starts_at, @sale_ends_at,
        sqlc.narg('plan_id'), sqlc.narg('plan_version'), @orphan_rule, @whole_tables, sqlc.narg('order_limit'));

-- name: CategoryInsert :exec
INSERT INTO categories (event_id, id, name)
SELECT @event_id::bigint, unnest(@ids::integer[]), unnest(@names::text[]);

-- name: TypeInsert :exec
INSERT INTO ticket_types (event_id, id, name)
SELECT @event_id::bigint, unnest(@ids::integer[]), unnest(@names::text[]);

-- name: TypeList :many
SELECT id, name FROM ticket_types WHERE event_id = @event_id ORDER BY id;

-- name: CategoryList :many
SELECT id, name FROM categories WHERE event_id = @event_id ORDER BY id;

-- name: PriceInsert :copyfrom
INSERT INTO prices (event_id, category_id, type_id, starts_at, amount) VALUES (@event_id, @category_id, @type_id, @starts_at, @amount);

-- name: PriceDelete :exec
DELETE FROM prices WHERE event_id = @event_id;

-- name: PriceListLock :exec
-- Those who change the prices of an event take turns; sales read on.
SELECT id FROM ticket_types WHERE event_id = @event_id AND id = 1 FOR UPDATE;

-- name: PriceList :many
-- Every tier, in order of time, and whether it is the one that counts now.
SELECT p.category_id, c.name AS category, p.type_id, t.name AS type, p.starts_at, p.amount,
       (p.starts_at <= statement_timestamp() AND NOT EXISTS (
           SELECT 1 FROM prices q WHERE q.event_id = p.event_id AND q.category_id = p.category_id AND q.type_id = p.type_id
           AND q.starts_at > p.starts_at AND q.starts_at <= statement_timestamp()))::boolean AS current
FROM prices p JOIN categories c ON c.event_id = p.event_id AND c.id = p.category_id
JOIN ticket_types t ON t.event_id = p.event_id AND t.id = p.type_id
WHERE p.event_id = @event_id ORDER BY p.category_id, p.type_id, p.starts_at;

-- name: AreaInsert :exec
INSERT INTO areas (event_id, id, name, category_id, first_seat, beyond, capacity)
VALUES (@event_id, @id, @name, @category_id, @first_seat, @beyond, @capacity);

-- name: EventGet :one
SELECT *, statement_timestamp()::timestamptz AS server_time FROM events WHERE id = @id;

-- name: EventList :many
-- Drafts are for their organizer alone; a caller without an organizer sees every organizer's public events.
SELECT *, statement_timestamp()::timestamptz AS server_time FROM events
WHERE (sqlc.narg('organizer_id')::bigint IS NULL OR organizer_id = sqlc.narg('organizer_id'))
  AND (status <> 'draft' OR organizer_id = sqlc.narg('organizer_id'))
  AND (sqlc.narg('only')::bigint[] IS NULL OR id = ANY(sqlc.narg('only')))
  AND (starts_at, id) > (@after_start::timestamptz, @after_id::bigint)
ORDER BY starts_at, id
LIMIT @max_rows;

-- name: EventLockForSale :one
-- Waits for a pause or cancel that is under way, and makes later ones wait for this sale.
-- channels: those that the caller is given seats of without naming them, 0 for none: a key that has channels here those alone, everybody
-- else what is in none or has released itself, and the organizer what is in channels that no key sells.
-- redrawn: the layout has changed while the statement waited; the row is the new one then, but the channels are those of before.
SELECT e.id, e.organizer_id, e.status, e.payment, e.currency, e.timezone, e.layout, e.orphan_rule, e.whole_tables, e.order_limit,
       (e.layout <> (SELECT n.layout FROM events n WHERE n.id = @id))::boolean AS redrawn,
       (e.sale_starts_at <= statement_timestamp())::boolean AS sale_started,
       (e.sale_ends_at <= statement_timestamp())::boolean AS sale_ended,
       (CASE WHEN EXISTS (SELECT 1 FROM channel_keys k WHERE k.event_id = @id AND k.key_id = @caller)
             THEN ARRAY(SELECT k.channel_id FROM channel_keys k WHERE k.event_id = @id AND k.key_id = @caller)
             ELSE ARRAY(SELECT 0 UNION ALL SELECT c.id FROM channels c
                        WHERE c.event_id = @id
                          AND (e.starts_at - c.release_before <= statement_timestamp() OR @organizer::boolean AND NOT EXISTS (
                              SELECT 1 FROM channel_keys k WHERE k.event_id = @id AND k.channel_id = c.id))) END)::integer[] AS channels
FROM events e, pg_advisory_xact_lock_shared(-(@id::bigint)) WHERE e.id = @id FOR SHARE;

-- name: EventLockForChange :one
SELECT id, organizer_id, status, timezone, starts_at, layout, plan_id, plan_version FROM events WHERE id = @id FOR NO KEY UPDATE;

-- name: EventRedrawn :exec
-- Tells every node that what the event has to sell, or to whom, is not what it knows.
UPDATE events SET layout = layout + 1 WHERE id = @id;

-- name: ChannelsAllowed :one
-- The channels of EventLockForSale, for those who only look.
SELECT (CASE WHEN EXISTS (SELECT 1 FROM channel_keys k WHERE k.event_id = @id AND k.key_id = @caller)
             THEN ARRAY(SELECT k.channel_id FROM channel_keys k WHERE k.event_id = @id AND k.key_id = @caller)
             ELSE ARRAY(SELECT 0 UNION ALL SELECT c.id FROM channels c
                        WHERE c.event_id = @id
                          AND (e.starts_at - c.release_before <= statement_timestamp() OR @organizer::boolean AND NOT EXISTS (
                              SELECT 1 FROM channel_keys k WHERE k.event_id = @id AND k.channel_id = c.id))) END)::integer[] AS channels
FROM events e WHERE e.id = @id;

-- name: EventUpdate :one
UPDATE events SET
    name = coalesce(sqlc.narg('name'), name),
    venue = coalesce(sqlc.narg('venue'), venue),
    starts_at = coalesce(sqlc.narg('starts_at'), starts_at),
    status = coalesce(sqlc.narg('status'), status),
    sale_starts_at = coalesce(sqlc.narg('sale_starts_at'), sale_starts_at),
    sale_ends_at = coalesce(sqlc.narg('sale_ends_at'), sale_ends_at),
    orphan_rule = coalesce(sqlc.narg('orphan_rule'), orphan_rule),
    order_limit = CASE WHEN @set_order_limit::boolean THEN sqlc.narg('order_limit') ELSE order_limit END
WHERE id = @id AND organizer_id = @organizer_id AND status = ANY(@from_status::text[])
RETURNING *, statement_timestamp()::timestamptz AS server_time;

-- name: AreaGet :one
SELECT * FROM areas WHERE event_id = @event_id AND id = @id;

-- name: EventAvailability :many
-- One row per section (or area) and category: how many of its seats are in which state now. What the caller has no channel for is
-- blocked to them.
SELECT n.section, n.area_id, c.name AS category, coalesce(p.amount, 0)::bigint AS price, n.total, n.booked, n.blocked, n.held, n.first_seat
FROM (
    SELECT s.event_id, s.section, s.area_id, s.category_id, count(*) AS total, min(s.id)::integer AS first_seat,
           count(*) FILTER (WHERE s.buyer IS NOT NULL) AS booked,
           count(*) FILTER (WHERE s.held_until > statement_timestamp()) AS held,
           count(*) FILTER (WHERE s.block_id IS NOT NULL
               OR s.buyer IS NULL AND (s.hold_id IS NULL OR s.held_until <= statement_timestamp())
                  AND NOT coalesce(s.channel_id, 0) = ANY(@channels::integer[]) AND NOT @any_channel::boolean) AS blocked
    FROM seats s WHERE s.event_id = @event_id
      AND (s.block_id IS NULL OR NOT s.block_id = ANY(ARRAY(
          SELECT b.id FROM blocks b WHERE b.event_id = @event_id AND b.plan_version IS NOT NULL))) -- no longer on the plan
    GROUP BY s.event_id, s.section, s.area_id, s.category_id
) n
JOIN categories c ON c.event_id = n.event_id AND c.id = n.category_id
LEFT JOIN prices_now p ON p.event_id = n.event_id AND p.category_id = n.category_id AND p.type_id = 1
ORDER BY n.first_seat;

-- name: EventToUnwind :one
-- Any of them: one that cannot be ended must not keep the others.
SELECT id FROM events WHERE status = 'cancelled' AND unwound_at IS NULL ORDER BY random() LIMIT 1;

-- name: EventUnwound :exec
UPDATE events SET unwound_at = statement_timestamp() WHERE id = @id AND status = 'cancelled';

-- name: EventChangeLimits :exec
SELECT set_config('lock_timeout', @lock_ms::text, true), set_config('statement_timeout', @statement_ms::text, true);

-- name: EventTurn :exec
-- Sales of a crowd share the event's row without a gap, and Postgres lets new sharers pass one who waits to write it: a pause took seconds.
-- This lock has a queue, and it is of this event alone. Each sale shares it before the row.
SELECT pg_advisory_xact_lock(-(@id::bigint));
