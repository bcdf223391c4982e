-- name: OutboxAdd :exec
INSERT INTO outbox (event_id, booking_id, kind, created_at) VALUES (@event_id, @booking_id, @kind, statement_timestamp());

-- name: OutboxTake :many
-- Locked, so that several relays share the work.
SELECT event_id, booking_id, kind FROM outbox WHERE handed_at IS NULL
ORDER BY created_at LIMIT @max_rows FOR UPDATE SKIP LOCKED;

-- name: OutboxHanded :exec
UPDATE outbox o SET handed_at = statement_timestamp()
FROM (SELECT unnest(@event_ids::bigint[]) AS event_id, unnest(@booking_ids::uuid[]) AS booking_id, unnest(@kinds::text[]) AS kind) h
WHERE o.event_id = h.event_id AND o.booking_id = h.booking_id AND o.kind = h.kind;

-- name: OutboxPurge :execrows
DELETE FROM outbox WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM outbox WHERE handed_at < statement_timestamp() - @age::interval LIMIT @max_rows));
