-- name: OrganizerInsert :one
INSERT INTO organizers (name) VALUES (@name) RETURNING id;

-- name: OrganizerByName :one
SELECT id FROM organizers WHERE name = @name ORDER BY id LIMIT 1;

-- name: APIKeyInsert :exec
INSERT INTO api_keys (id, organizer_id, name, scope, secret_hash, origins)
VALUES (@id, @organizer_id, @name, @scope, @secret_hash, @origins::text[]);

-- name: APIKeyGet :one
SELECT * FROM api_keys WHERE id = @id AND revoked_at IS NULL;

-- name: APIKeyList :many
SELECT k.*, o.name AS organizer FROM api_keys k JOIN organizers o ON o.id = k.organizer_id ORDER BY k.created_at, k.id;

-- name: APIKeyOrigins :many
SELECT id, organizer_id, origins FROM api_keys WHERE revoked_at IS NULL AND cardinality(origins) > 0 ORDER BY created_at, id LIMIT @most;

-- name: APIKeyRevoke :execrows
UPDATE api_keys SET revoked_at = now() WHERE id = @id AND revoked_at IS NULL;

-- name: OrganizersLock :exec
-- So that two who look for a name, and make it because it is missing, make one organizer.
LOCK TABLE organizers IN SHARE ROW EXCLUSIVE MODE;
