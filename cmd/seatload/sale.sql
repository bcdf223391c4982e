-- The sale of one seat as one statement, one booking per transaction: the yardstick. Each client sells seats of its own.
\set n :n + 1
\set seat :client_id * :share + :n
\set r random(1, 4000000000000000000)
WITH ev AS (
    SELECT e.id, e.currency FROM events e
    WHERE e.id = :event AND e.status = 'on_sale' AND e.sale_starts_at <= statement_timestamp() AND e.sale_ends_at > statement_timestamp()
    FOR SHARE
), sold AS (
    UPDATE seats s
    SET buyer = md5(:r::text)::uuid, booking_id = md5(:r::text)::uuid, hold_id = NULL, held_until = NULL, fence = s.fence + 1
    FROM ev
    WHERE s.event_id = :event AND s.id = :seat AND s.buyer IS NULL AND s.block_id IS NULL
      AND (s.hold_id IS NULL OR s.held_until <= statement_timestamp())
    RETURNING s.id, s.section, s.row_label, s.number, s.fence, ev.currency,
        (SELECT p.amount FROM prices p WHERE p.event_id = :event AND p.category_id = s.category_id AND p.type_id = 1
         ORDER BY p.starts_at DESC LIMIT 1) AS price
), booked AS (
    INSERT INTO bookings (event_id, id, number, buyer, buyer_name, buyer_email, total, currency, created_at)
    SELECT :event, md5(:r::text)::uuid, :r::text, md5(:r::text)::uuid, 'Buyer', 'buyer@example.com', price, currency, statement_timestamp()
    FROM sold
), ticketed AS (
    INSERT INTO tickets (event_id, booking_id, seat_id, fence, type, price, code)
    SELECT :event, md5(:r::text)::uuid, id, fence, 'standard', price, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ' FROM sold
), logged AS (
    INSERT INTO seat_ledger (event_id, seat_id, fence, action, actor, ref, at)
    SELECT :event, id, fence, 'sold', md5(:r::text)::uuid, md5(:r::text)::uuid, statement_timestamp() FROM sold
), posted AS (
    INSERT INTO outbox (event_id, booking_id, kind, created_at)
    SELECT :event, md5(:r::text)::uuid, 'booking_confirmed', statement_timestamp() FROM sold
), answered AS (
    INSERT INTO idempotency_keys (event_id, caller, key, fingerprint, result, created_at)
    SELECT :event, md5(:r::text)::uuid, :r::text, decode(md5(:r::text) || md5(:r::text), 'hex'),
           jsonb_build_object('booking', md5(:r::text)), statement_timestamp()
    FROM sold
)
SELECT id, section, row_label, number, fence, price, currency FROM sold ORDER BY id;
