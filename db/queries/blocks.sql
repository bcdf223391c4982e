-- name: BlockInsert :one
INSERT INTO blocks (event_id, id, reason, created_by, created_at)
VALUES (@event_id, @id, @reason, @created_by, statement_timestamp())
RETURNING created_at;

-- name: BlockLock :one
SELECT * FROM blocks WHERE event_id = @event_id AND id = @id FOR UPDATE;

-- name: BlockSeats :many
SELECT id FROM seats WHERE event_id = @event_id AND block_id = @block_id ORDER BY id;

-- name: BlockRemove :execrows
UPDATE blocks SET removed_at = statement_timestamp() WHERE event_id = @event_id AND id = @id AND removed_at IS NULL;
