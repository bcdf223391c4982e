-- name: ChannelNext :one
-- The id of the event's next channel, and how many it has. There can be fewer than the highest id, as some are deleted.
SELECT (coalesce(max(id), 0) + 1)::integer AS id, count(*) AS known FROM channels WHERE event_id = @event_id;

-- name: ChannelInsert :exec
INSERT INTO channels (event_id, id, name, release_before, created_at)
VALUES (@event_id, @id, @name, sqlc.narg('release_before')::interval, statement_timestamp());

-- name: ChannelUpdate :execrows
UPDATE channels SET
    name = coalesce(sqlc.narg('name'), name),
    release_before = CASE WHEN @set_release::boolean THEN sqlc.narg('release_before')::interval ELSE release_before END
WHERE event_id = @event_id AND id = @id;

-- name: ChannelDelete :execrows
DELETE FROM channels WHERE event_id = @event_id AND id = @id;

-- name: ChannelList :many
-- With what is in each, or the one with the given id.
SELECT c.id, c.name, c.release_before, e.timezone,
       e.starts_at,
       coalesce(e.starts_at - c.release_before <= statement_timestamp(), false)::boolean AS released,
       ARRAY(SELECT k.key_id FROM channel_keys k WHERE k.event_id = c.event_id AND k.channel_id = c.id ORDER BY k.key_id)::uuid[] AS keys,
       coalesce(n.total, 0)::bigint AS total, coalesce(n.booked, 0)::bigint AS booked, coalesce(n.held, 0)::bigint AS held,
       coalesce(n.blocked, 0)::bigint AS blocked
FROM channels c JOIN events e ON e.id = c.event_id
LEFT JOIN (
    SELECT s.channel_id, count(*) AS total, count(*) FILTER (WHERE s.buyer IS NOT NULL) AS booked,
           count(*) FILTER (WHERE s.held_until > statement_timestamp()) AS held, count(*) FILTER (WHERE s.block_id IS NOT NULL) AS blocked
    FROM seats s WHERE s.event_id = @event_id AND s.channel_id IS NOT NULL GROUP BY s.channel_id
) n ON n.channel_id = c.id
WHERE c.event_id = @event_id AND (sqlc.narg('id')::integer IS NULL OR c.id = sqlc.narg('id'))
ORDER BY c.id;

-- name: ChannelSeats :many
SELECT id FROM seats WHERE event_id = @event_id AND channel_id = @channel_id::integer ORDER BY id;

-- name: ChannelKeysDelete :exec
DELETE FROM channel_keys WHERE event_id = @event_id AND channel_id = @channel_id;

-- name: ChannelKeysInsert :exec
INSERT INTO channel_keys (event_id, key_id, channel_id) SELECT @event_id::bigint, unnest(@keys::uuid[]), @channel_id::integer;

-- name: PartnerKeys :many
-- Of the given keys those that partners of the organizer can sell with.
SELECT id FROM api_keys WHERE id = ANY(@ids::uuid[]) AND organizer_id = @organizer_id AND scope = 'partner' AND revoked_at IS NULL;

-- name: SeatAllot :many
-- Only what nobody has and no other channel: fewer rows than ids say that somebody does. It is no change of ownership.
UPDATE seats s SET channel_id = @channel_id::integer
WHERE s.event_id = @event_id AND s.id = ANY(@ids::integer[]) AND s.buyer IS NULL AND s.block_id IS NULL
  AND (s.hold_id IS NULL OR s.held_until <= statement_timestamp()) AND (s.channel_id IS NULL OR s.channel_id = @channel_id)
RETURNING s.id;

-- name: SeatUnallot :many
-- Whoever has them keeps them.
UPDATE seats s SET channel_id = NULL
WHERE s.event_id = @event_id AND s.channel_id = @channel_id::integer AND s.id = ANY(@ids::integer[])
RETURNING s.id;
