-- name: BuyerCapLock :exec
-- Serialises one buyer's holds on one event, so that the count that follows cannot be passed by a parallel request.
INSERT INTO buyer_caps (event_id, buyer) VALUES (@event_id, @buyer)
ON CONFLICT (event_id, buyer) DO UPDATE SET buyer = excluded.buyer;

-- name: HeldCount :one
SELECT coalesce(sum((SELECT count(*) FROM hold_seats hs WHERE hs.event_id = h.event_id AND hs.hold_id = h.id)), 0)::bigint
FROM holds h WHERE h.event_id = @event_id AND h.buyer = @buyer AND h.status = 'open' AND h.expires_at > statement_timestamp();

-- name: HoldInsert :one
INSERT INTO holds (event_id, id, buyer, acquired_at, expires_at, ends_at)
VALUES (@event_id, @id, @buyer, statement_timestamp(),
        statement_timestamp() + @ttl::interval, statement_timestamp() + @longest::interval)
RETURNING acquired_at, expires_at, ends_at;

-- name: HoldGet :one
SELECT sqlc.embed(h), e.organizer_id, e.currency, e.timezone, statement_timestamp()::timestamptz AS server_time,
       (h.expires_at <= statement_timestamp())::boolean AS over
FROM holds h JOIN events e ON e.id = h.event_id WHERE h.event_id = @event_id AND h.id = @id;

-- name: HoldLock :one
SELECT *, (expires_at <= statement_timestamp())::boolean AS over
FROM holds WHERE event_id = @event_id AND id = @id FOR UPDATE;

-- name: HoldSeats :many
SELECT hs.seat_id, hs.fence, hs.type, hs.price, s.section, s.row_label, s.number,
       (s.hold_id = hs.hold_id AND s.fence = hs.fence)::boolean AS owned
FROM hold_seats hs JOIN seats s ON s.event_id = hs.event_id AND s.id = hs.seat_id
WHERE hs.event_id = @event_id AND hs.hold_id = @hold_id
ORDER BY hs.seat_id;

-- name: HoldSeatDelete :exec
DELETE FROM hold_seats WHERE event_id = @event_id AND hold_id = @hold_id AND seat_id = ANY(@ids::integer[]);

-- name: HoldSeatRetype :many
-- Sells seats of a hold as other ticket types, at what those cost now. Fewer rows than ids: some are not sold so.
WITH cost AS MATERIALIZED (
    SELECT p.category_id, p.type, p.amount FROM prices_now p WHERE p.event_id = @event_id
), want AS MATERIALIZED (
    SELECT a.id, p.type, p.amount
    FROM (SELECT unnest(@ids::integer[]) AS id, unnest(@types::text[]) AS type) a
    JOIN seats s ON s.event_id = @event_id AND s.id = a.id
    JOIN cost p ON p.category_id = s.category_id AND p.type = a.type
)
UPDATE hold_seats hs SET type = w.type, price = w.amount
FROM want w
WHERE hs.event_id = @event_id AND hs.hold_id = @hold_id AND hs.seat_id = w.id
RETURNING hs.seat_id;

-- name: HoldExtend :one
-- Never past the hold's end, which was fixed when it was acquired.
UPDATE holds SET expires_at = least(ends_at, greatest(expires_at, statement_timestamp() + @ttl::interval)), extensions = extensions + 1
WHERE event_id = @event_id AND id = @id AND status = 'open' AND expires_at > statement_timestamp()
RETURNING expires_at;

-- name: HoldSetCheckout :execrows
UPDATE holds SET checkout_at = CASE WHEN @on_checkout::boolean THEN coalesce(checkout_at, statement_timestamp()) END
WHERE event_id = @event_id AND id = @id AND status = 'open' AND expires_at > statement_timestamp();

-- name: HoldBook :execrows
WITH pages AS (DELETE FROM hold_pages p WHERE p.event_id = @event_id AND p.hold_id = @id)
UPDATE holds h SET status = 'booked', booking_id = @booking_id
WHERE h.event_id = @event_id AND id = @id AND status = 'open' AND expires_at > statement_timestamp();

-- name: HoldClose :execrows
WITH pages AS (DELETE FROM hold_pages p WHERE p.event_id = @event_id AND p.hold_id = @id)
UPDATE holds h SET status = @status WHERE h.event_id = @event_id AND id = @id AND status = 'open';

-- name: HoldsOpen :many
SELECT id FROM holds WHERE event_id = @event_id AND status = 'open' ORDER BY id LIMIT @max_rows;

-- name: HoldsOver :many
SELECT event_id, id FROM holds WHERE status = 'open' AND expires_at <= statement_timestamp()
ORDER BY expires_at LIMIT @max_rows;

-- name: HoldLockOver :one
-- For the sweeper: passes over a hold that its owner or another sweeper is writing.
SELECT id FROM holds WHERE event_id = @event_id AND id = @id AND status = 'open' AND expires_at <= statement_timestamp()
FOR UPDATE SKIP LOCKED;
