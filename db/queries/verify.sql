-- The invariants of a sale, as queries over a live database. Each returns the number of rows that break it.

-- name: VerifySoldTwice :one
SELECT count(*) FROM (SELECT 1 FROM tickets WHERE status = 'valid' GROUP BY event_id, seat_id HAVING count(*) > 1) broken;

-- name: VerifySeatWithoutTicket :one
SELECT count(*) FROM seats s WHERE s.buyer IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM tickets t JOIN bookings b ON b.event_id = t.event_id AND b.id = t.booking_id
    WHERE t.event_id = s.event_id AND t.seat_id = s.id AND t.status = 'valid' AND t.booking_id = s.booking_id
      AND b.status = 'confirmed' AND b.buyer = s.buyer AND t.fence = s.fence);

-- name: VerifyTicketWithoutSeat :one
SELECT count(*) FROM tickets t WHERE t.status = 'valid' AND NOT EXISTS (
    SELECT 1 FROM seats s WHERE s.event_id = t.event_id AND s.id = t.seat_id AND s.booking_id = t.booking_id);

-- name: VerifyPartialBooking :one
SELECT count(*) FROM bookings b WHERE (b.status = 'confirmed') <> EXISTS (
    SELECT 1 FROM tickets t WHERE t.event_id = b.event_id AND t.booking_id = b.id AND t.status = 'valid')
  OR b.total <> (SELECT coalesce(sum(t.price), 0) FROM tickets t WHERE t.event_id = b.event_id AND t.booking_id = b.id);

-- name: VerifyOutbox :one
SELECT ((SELECT count(*) FROM bookings b WHERE NOT EXISTS (
            SELECT 1 FROM outbox o WHERE o.event_id = b.event_id AND o.booking_id = b.id AND o.kind = 'booking_confirmed')
          AND b.created_at > statement_timestamp() - @age::interval)
     + (SELECT count(*) FROM outbox o WHERE NOT EXISTS (
            SELECT 1 FROM bookings b WHERE b.event_id = o.event_id AND b.id = o.booking_id)))::bigint AS broken;

-- name: VerifyLedger :one
-- The newest ledger row of a seat carries the seat's fence, and fences have no gap.
SELECT count(*) FROM seats s
LEFT JOIN (SELECT event_id, seat_id, max(fence) AS top, count(*) AS rows FROM seat_ledger GROUP BY event_id, seat_id) l
  ON l.event_id = s.event_id AND l.seat_id = s.id
WHERE s.fence <> coalesce(l.top, 0) OR s.fence <> coalesce(l.rows, 0);

-- name: VerifyHeldSeats :one
-- A held seat belongs to an open hold that lists it with the seat's fence, until the same time.
SELECT count(*) FROM seats s WHERE s.hold_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM holds h JOIN hold_seats hs ON hs.event_id = h.event_id AND hs.hold_id = h.id
    WHERE h.event_id = s.event_id AND h.id = s.hold_id AND h.status = 'open'
      AND hs.seat_id = s.id AND hs.fence = s.fence AND h.expires_at = s.held_until);

-- name: VerifyOverdueHolds :one
-- A seat whose hold ran out longer ago than this is one that no sweeper frees.
SELECT count(*) FROM seats WHERE held_until < statement_timestamp() - @age::interval;

-- name: VerifyUnwoundEvents :one
SELECT count(*) FROM seats s JOIN events e ON e.id = s.event_id
WHERE e.unwound_at IS NOT NULL AND (s.buyer IS NOT NULL OR s.hold_id IS NOT NULL);

-- name: VerifyFeeds :one
-- The numbers of an event's changes have no gap below the feed's own, and follow the fences of each seat.
SELECT ((SELECT count(*) FROM feeds f
         LEFT JOIN (SELECT event_id, count(*) AS rows, min(seq) AS low, max(seq) AS top FROM seat_ledger WHERE seq > 0 GROUP BY event_id) l
           ON l.event_id = f.event_id
         WHERE l.rows IS NOT NULL AND (l.top <> f.seq OR l.top - l.low + 1 <> l.rows))
      + (SELECT count(*) FROM (SELECT seq, lag(seq) OVER (PARTITION BY event_id, seat_id ORDER BY fence) AS before FROM seat_ledger) l
         WHERE l.seq < l.before))::bigint AS broken;
