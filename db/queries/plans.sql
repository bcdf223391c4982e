-- name: VenueEnsure :one
-- The row stays locked either way: imports of one venue take turns, so that two of the same name make one plan.
INSERT INTO venues (organizer_id, name) VALUES (@organizer_id, @name)
ON CONFLICT (organizer_id, name) DO UPDATE SET name = excluded.name
RETURNING id;

-- name: VenueList :many
SELECT id, name FROM venues WHERE organizer_id = @organizer_id AND id > @after_id ORDER BY id LIMIT @max_rows;

-- name: PlanOfVenue :one
SELECT id FROM plans WHERE venue_id = @venue_id AND name = @name ORDER BY created_at, id LIMIT 1 FOR UPDATE;

-- name: PlanLock :one
SELECT id FROM plans WHERE id = @id AND organizer_id = @organizer_id FOR UPDATE;

-- name: PlanInsert :exec
INSERT INTO plans (id, organizer_id, venue_id, name, created_at)
VALUES (@id, @organizer_id, @venue_id, @name, statement_timestamp());

-- name: PlanGet :one
SELECT p.id, p.name, v.name AS venue, p.created_at
FROM plans p JOIN venues v ON v.id = p.venue_id
WHERE p.id = @id AND p.organizer_id = @organizer_id;

-- name: PlanList :many
-- Each with its newest version.
SELECT p.id, p.name, v.name AS venue, p.created_at AS made_at,
       n.plan_id, n.number, n.status, n.digest, n.counts, n.errors, n.warnings, n.created_at, n.published_at
FROM plans p
JOIN venues v ON v.id = p.venue_id
JOIN plan_versions n ON n.plan_id = p.id AND n.number = (SELECT max(number) FROM plan_versions WHERE plan_id = p.id)
WHERE p.organizer_id = @organizer_id AND (p.created_at, p.id) > (@after_time::timestamptz, @after_id::bigint)
ORDER BY p.created_at, p.id
LIMIT @max_rows;

-- name: PlanVersionInsert :one
INSERT INTO plan_versions (plan_id, number, status, document, digest, counts, errors, warnings, created_by, created_at)
VALUES (@plan_id, @number, @status, @document, @digest, @counts, @errors, @warnings, @created_by, statement_timestamp())
RETURNING created_at;

-- name: PlanVersions :many
-- The newest first.
SELECT plan_id, number, status, digest, counts, errors, warnings, created_at, published_at
FROM plan_versions WHERE plan_id = @plan_id ORDER BY number DESC LIMIT @max_rows;

-- name: PlanVersionGet :one
SELECT n.plan_id, n.number, n.status, n.digest, n.counts, n.errors, n.warnings, n.created_at, n.published_at
FROM plan_versions n JOIN plans p ON p.id = n.plan_id
WHERE n.plan_id = @plan_id AND n.number = @number AND p.organizer_id = @organizer_id;

-- name: PlanDocument :one
SELECT n.document FROM plan_versions n JOIN plans p ON p.id = n.plan_id
WHERE n.plan_id = @plan_id AND n.number = @number AND p.organizer_id = @organizer_id;

-- name: PlanVersionPublish :one
UPDATE plan_versions n SET status = 'published', published_at = statement_timestamp()
FROM plans p
WHERE n.plan_id = @plan_id AND n.number = @number AND n.status = 'validated' AND p.id = n.plan_id AND p.organizer_id = @organizer_id
RETURNING n.plan_id, n.number, n.status, n.digest, n.counts, n.errors, n.warnings, n.created_at, n.published_at;
