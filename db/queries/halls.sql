-- name: HallSeats :many
-- Where the numbered seats are, and of which layout that is. Seats that the plan has no longer have no spot.
SELECT s.id, s.section, l.line, l.run, l.pos, s.category_id, coalesce(s.channel_id, 0)::integer AS channel, l.distance, l.x, l.y,
       l.attributes, l.tags
FROM spots l JOIN seats s ON s.event_id = l.event_id AND s.id = l.seat_id
WHERE l.event_id = @event_id ORDER BY s.id;

-- name: HallVacancy :one
-- All that is free at one moment, with what decides whether it may be sold now. channels: whether the event has any.
SELECT e.organizer_id, e.status, e.layout,
       (e.sale_starts_at <= statement_timestamp())::boolean AS sale_started,
       (e.sale_ends_at <= statement_timestamp())::boolean AS sale_ended,
       EXISTS (SELECT 1 FROM channels c WHERE c.event_id = @event_id)::boolean AS channels,
       ARRAY(SELECT c.id FROM channels c
             WHERE c.event_id = @event_id AND e.starts_at - c.release_before <= statement_timestamp())::integer[] AS released,
       ARRAY(SELECT s.id FROM seats s
             WHERE s.event_id = @event_id AND s.area_id IS NULL AND s.buyer IS NULL AND s.block_id IS NULL
               AND (s.hold_id IS NULL OR s.held_until <= statement_timestamp()))::integer[] AS free
FROM events e WHERE e.id = @event_id;

-- name: HallLayout :one
SELECT layout FROM events WHERE id = @event_id;

-- name: HallEnter :exec
-- Those who chose in memory write side by side.
SELECT pg_advisory_xact_lock_shared(@event_id);

-- name: HallQueue :exec
-- Those who have lost several times write alone: they wait for all who have entered, and nobody enters meanwhile.
SELECT pg_advisory_xact_lock(@event_id);
