-- name: KeyGet :one
SELECT fingerprint, result FROM idempotency_keys WHERE event_id = @event_id AND caller = @caller AND key = @key;

-- name: KeyInsert :exec
INSERT INTO idempotency_keys (event_id, caller, key, fingerprint, result, created_at)
VALUES (@event_id, @caller, @key, @fingerprint, @result, statement_timestamp());

-- name: KeyPurge :execrows
DELETE FROM idempotency_keys WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM idempotency_keys WHERE created_at < statement_timestamp() - @age::interval LIMIT @max_rows));
