-- name: Sell :many
-- The sale: seats, booking, tickets, ledger, outbox and idempotency row in one statement, all from the rows that the conditional
-- UPDATE returned. Fewer rows than ids: somebody else has the rest, and the caller rolls back. One seat needs no transaction around it:
-- zero rows sold means nothing written. A used idempotency key fails the whole statement (23505).
--   hold_id   sells what this hold still owns, by the fences it was given; NULL sells what is free or whose hold has run out
--   fences    the fence to expect, or -1; prices: the price that was promised, or -1 for what the type costs now
--   area_id   sells quantity places of the area, the first that are free from from_seat on, instead of ids; NULL: none
--   types     "" is the event's first; judged: what rules the event has for the choice of seats is no matter of this statement
WITH ev AS (
    SELECT e.id, e.currency, e.timezone, e.payment, e.starts_at FROM events e, pg_advisory_xact_lock_shared(-(@event_id::bigint)) -- see EventTurn
    WHERE e.id = @event_id AND e.status = 'on_sale'
      AND (sqlc.narg('organizer_id')::bigint IS NULL OR e.organizer_id = sqlc.narg('organizer_id'))
      AND (sqlc.narg('hold_id')::uuid IS NOT NULL
           OR (e.sale_starts_at <= statement_timestamp() AND e.sale_ends_at > statement_timestamp()))
      AND (@judged::boolean OR NOT (e.orphan_rule OR e.whole_tables))
    FOR SHARE
), own AS (
    SELECT k.channel_id FROM channel_keys k WHERE k.event_id = @event_id AND k.key_id = @buyer::uuid
), allowed AS (
    SELECT channel_id FROM own
    UNION ALL SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM own)
    UNION ALL SELECT c.id FROM channels c, ev
    WHERE c.event_id = @event_id AND NOT EXISTS (SELECT 1 FROM own)
      AND (ev.starts_at - c.release_before <= statement_timestamp() OR @any_channel::boolean AND NOT EXISTS (
          SELECT 1 FROM channel_keys k WHERE k.event_id = @event_id AND k.channel_id = c.id))
), picked AS MATERIALIZED (
    -- Like SeatPickUnits, and written in its way.
    SELECT s.id FROM seats s
    WHERE s.event_id = @event_id
      AND s.id >= greatest(@from_seat::integer, (SELECT a.first_seat FROM areas a WHERE a.event_id = @event_id AND a.id = sqlc.narg('area_id')))
      AND (s.event_id, s.id) < (@event_id, (SELECT a.beyond FROM areas a WHERE a.event_id = @event_id AND a.id = sqlc.narg('area_id')))
      AND CASE WHEN s.area_id = sqlc.narg('area_id')::integer AND s.buyer IS NULL AND s.block_id IS NULL
                    AND (s.hold_id IS NULL OR s.held_until <= statement_timestamp())
                    AND coalesce(s.channel_id, 0) = ANY(ARRAY(SELECT channel_id FROM allowed)) THEN true END
    ORDER BY s.id LIMIT @quantity::integer FOR UPDATE SKIP LOCKED
), cost AS MATERIALIZED (
    SELECT p.category_id, p.type_id, p.type, p.amount FROM prices_now p WHERE p.event_id = @event_id
), asked AS (
    SELECT unnest(@ids::integer[]) AS id, unnest(@fences::bigint[]) AS fence, unnest(@prices::bigint[]) AS price,
           unnest(@types::text[]) AS type, unnest(@codes::text[]) AS code
    UNION ALL
    SELECT unnest(ARRAY(SELECT p.id FROM picked p ORDER BY p.id)), -1, -1, @area_type::text, unnest(@codes::text[])
), want AS MATERIALIZED (
    SELECT a.id, a.fence, a.code, CASE WHEN a.price < 0 THEN p.amount ELSE a.price END AS price, coalesce(p.type, a.type) AS type
    FROM asked a JOIN seats s ON s.event_id = @event_id AND s.id = a.id
    LEFT JOIN cost p ON p.category_id = s.category_id AND (p.type = a.type OR a.type = '' AND p.type_id = 1)
), sold AS (
    UPDATE seats s
    SET buyer = @buyer::uuid, booking_id = @booking_id::uuid, hold_id = NULL, held_until = NULL, fence = s.fence + 1
    FROM ev, want w
    WHERE s.event_id = @event_id AND s.id = w.id
      AND s.buyer IS NULL AND s.block_id IS NULL
      AND (w.fence < 0 OR s.fence = w.fence)
      AND w.price IS NOT NULL AND (@trusted::boolean OR ev.payment = 'none' OR w.price = 0)
      AND (sqlc.narg('hold_id')::uuid IS NOT NULL OR (s.area_id IS NOT NULL) = @places::boolean)
      AND (@any_channel::boolean OR coalesce(s.channel_id, 0) = ANY(ARRAY(SELECT channel_id FROM allowed)))
      AND CASE WHEN sqlc.narg('hold_id')::uuid IS NULL THEN s.hold_id IS NULL OR s.held_until <= statement_timestamp()
               ELSE s.hold_id = sqlc.narg('hold_id') END
    RETURNING s.id, s.section, s.row_label, s.number, s.fence, w.type, w.code, w.price, ev.currency, ev.timezone
), booked AS (
    INSERT INTO bookings (event_id, id, number, buyer, buyer_name, buyer_email, payment_reference, hold_id, total, currency, created_at)
    SELECT @event_id, @booking_id, @number, @buyer, @buyer_name, @buyer_email, sqlc.narg('payment_reference'), sqlc.narg('hold_id'),
           sum(price), min(currency), statement_timestamp()
    FROM sold HAVING count(*) > 0
), ticketed AS (
    INSERT INTO tickets (event_id, booking_id, seat_id, fence, type, price, code)
    SELECT @event_id, @booking_id, id, fence, type, price, code FROM sold
), logged AS (
    INSERT INTO seat_ledger (event_id, seat_id, fence, action, actor, ref, at)
    SELECT @event_id, id, fence, 'sold', @buyer, @booking_id, statement_timestamp() FROM sold
), posted AS (
    INSERT INTO outbox (event_id, booking_id, kind, created_at)
    SELECT @event_id, @booking_id, 'booking_confirmed', statement_timestamp() FROM sold LIMIT 1
), answered AS (
    INSERT INTO idempotency_keys (event_id, caller, key, fingerprint, result, created_at)
    SELECT @event_id, @buyer, @key::text, @fingerprint::bytea,
           jsonb_build_object('booking', @booking_id), statement_timestamp()
    FROM sold HAVING count(*) > 0
)
SELECT o.id, o.section, o.row_label, o.number, o.fence, o.price::bigint AS price, o.type::text AS type, o.code::text AS code, o.currency, o.timezone,
       statement_timestamp()::timestamptz AS created_at
FROM sold o ORDER BY o.id;

-- name: BookingGet :one
SELECT sqlc.embed(b), e.organizer_id, e.timezone FROM bookings b JOIN events e ON e.id = b.event_id
WHERE b.event_id = @event_id AND b.id = @id;

-- name: BookingTickets :many
SELECT t.*, s.section, s.row_label, s.number FROM tickets t
JOIN seats s ON s.event_id = t.event_id AND s.id = t.seat_id
WHERE t.event_id = @event_id AND t.booking_id = @booking_id
ORDER BY t.seat_id;

-- name: BookingCancel :one
UPDATE bookings SET status = 'cancelled', cancelled_at = statement_timestamp()
WHERE event_id = @event_id AND id = @id AND status = 'confirmed'
RETURNING cancelled_at;

-- name: TicketsCancel :many
UPDATE tickets SET status = 'cancelled'
WHERE event_id = @event_id AND booking_id = @booking_id AND status = 'valid'
RETURNING seat_id;

-- name: BookingList :many
-- Newest first. organizer_id or buyer says whose; the rest narrows.
SELECT sqlc.embed(b), e.organizer_id, e.timezone FROM bookings b JOIN events e ON e.id = b.event_id
WHERE (sqlc.narg('organizer_id')::bigint IS NULL OR e.organizer_id = sqlc.narg('organizer_id'))
  AND (sqlc.narg('buyer')::uuid IS NULL OR b.buyer = sqlc.narg('buyer'))
  AND (sqlc.narg('event_id')::bigint IS NULL OR b.event_id = sqlc.narg('event_id'))
  AND (sqlc.narg('only')::bigint[] IS NULL OR b.event_id = ANY(sqlc.narg('only')))
  AND (sqlc.narg('email')::text IS NULL OR lower(b.buyer_email) = lower(sqlc.narg('email')))
  AND (sqlc.narg('reference')::text IS NULL OR b.payment_reference = sqlc.narg('reference') OR b.number = sqlc.narg('reference'))
  AND (sqlc.narg('status')::text IS NULL OR b.status = sqlc.narg('status'))
  AND (b.created_at, b.event_id, b.id) < (@before_time::timestamptz, @before_event::bigint, @before_id::uuid)
ORDER BY b.created_at DESC, b.event_id DESC, b.id DESC
LIMIT @max_rows;

-- name: BookingsConfirmed :many
SELECT id FROM bookings WHERE event_id = @event_id AND status = 'confirmed' ORDER BY created_at, id LIMIT @max_rows;
