-- name: OrganizerLock :one
-- Changes of an organizer's users take turns: who counts its owners sees them all.
SELECT id FROM organizers WHERE id = @id FOR NO KEY UPDATE;

-- name: UserInsert :exec
INSERT INTO users (id, organizer_id, email, name, role, every_event, created_at)
VALUES (@id, @organizer_id, @email, @name, @role, @every_event, statement_timestamp());

-- name: PersonGet :one
SELECT * FROM people WHERE id = @id;

-- name: PersonOf :one
SELECT * FROM people WHERE id = @id AND organizer_id = @organizer_id;

-- name: PersonByEmail :one
SELECT * FROM people WHERE lower(email) = lower(@email);

-- name: PeopleOf :many
SELECT * FROM people WHERE organizer_id = @organizer_id ORDER BY created_at, id LIMIT @max_rows;

-- name: PeopleAll :many
SELECT * FROM people ORDER BY organizer, organizer_id, created_at, id;

-- name: PeopleCount :one
SELECT count(*) AS people, count(*) FILTER (WHERE role = 'owner') AS owners,
       count(*) FILTER (WHERE role = 'owner' AND password_hash IS NOT NULL) AS active_owners FROM people WHERE organizer_id = @organizer_id;

-- name: UserLimit :exec
UPDATE users SET role = @role, every_event = @every_event WHERE id = @id;

-- name: UserEventsClear :exec
DELETE FROM user_events WHERE user_id = @user_id;

-- name: UserEventsAdd :execrows
INSERT INTO user_events (user_id, event_id)
SELECT @user_id, e.id FROM events e WHERE e.id = ANY(@events::bigint[]) AND e.organizer_id = @organizer_id;

-- name: UserRemove :exec
UPDATE users SET removed_at = statement_timestamp(), password_hash = NULL WHERE id = @id;

-- name: AttemptCount :execrows
-- An attempt counts before its password is looked at, so that many at once are not all let through. The first few cost no wait, then it
-- doubles from a second on. The address is folded as users_email does it, whoever's it is.
INSERT INTO attempts AS a (address, failures, wait_until)
VALUES (sha256(convert_to(lower(@email), 'UTF8')), 1, statement_timestamp())
ON CONFLICT (address) DO UPDATE
SET failures = a.failures + 1, wait_until = statement_timestamp() + make_interval(secs =>
    CASE WHEN a.failures < @free::integer THEN 0 ELSE least(@longest::double precision, 2 ^ least(a.failures - @free::integer, 10)) END)
WHERE a.wait_until <= statement_timestamp();

-- name: AttemptWait :one
SELECT extract(epoch FROM wait_until - statement_timestamp())::double precision FROM attempts
WHERE address = sha256(convert_to(lower(@email), 'UTF8'));

-- name: AttemptsForgive :exec
DELETE FROM attempts WHERE address = sha256(convert_to(lower(@email), 'UTF8'));

-- name: AttemptsSweep :exec
-- A few at each attempt, which adds one.
DELETE FROM attempts WHERE address IN (
    SELECT address FROM attempts WHERE wait_until < statement_timestamp() - @kept::interval ORDER BY wait_until LIMIT 10 FOR UPDATE SKIP LOCKED);

-- name: UserSignedIn :execrows
-- Only if the password that was looked at is still the user's.
UPDATE users SET password_hash = @new_hash
WHERE id = @id AND removed_at IS NULL AND password_hash = @old_hash;

-- name: UserSetPassword :execrows
UPDATE users SET password_hash = @password_hash WHERE id = @id AND removed_at IS NULL;

-- name: SessionInsert :one
INSERT INTO user_sessions (id, user_id, created_at, seen_at, expires_at)
VALUES (@id, @user_id, statement_timestamp(), statement_timestamp(), statement_timestamp() + @lifetime::interval)
RETURNING expires_at;

-- name: SessionsTrim :exec
-- What has ended, and the oldest of those above the limit.
DELETE FROM user_sessions s WHERE s.user_id = @user_id AND (s.expires_at <= statement_timestamp() OR s.id IN (
    SELECT o.id FROM user_sessions o WHERE o.user_id = @user_id ORDER BY o.created_at DESC, o.id OFFSET @kept::integer));

-- name: SessionGet :one
SELECT sqlc.embed(p), s.seen_at, s.expires_at FROM user_sessions s JOIN people p ON p.id = s.user_id
WHERE s.id = @id AND s.expires_at > statement_timestamp() AND s.seen_at > statement_timestamp() - @idle::interval;

-- name: SessionSeen :exec
UPDATE user_sessions SET seen_at = statement_timestamp() WHERE id = @id;

-- name: SessionDelete :exec
DELETE FROM user_sessions WHERE id = @id;

-- name: SessionsEnd :exec
DELETE FROM user_sessions WHERE user_id = @user_id;

-- name: TokenPut :one
INSERT INTO user_tokens (hash, user_id, purpose, expires_at)
VALUES (@hash, @user_id, @purpose, statement_timestamp() + @lifetime::interval)
ON CONFLICT (user_id, purpose) DO UPDATE SET hash = EXCLUDED.hash, expires_at = EXCLUDED.expires_at
RETURNING expires_at;

-- name: TokenGet :one
SELECT user_id, purpose FROM user_tokens WHERE hash = @hash AND expires_at > statement_timestamp();

-- name: TokenTake :one
DELETE FROM user_tokens WHERE hash = @hash AND expires_at > statement_timestamp() RETURNING user_id, purpose;

-- name: TokensEnd :exec
DELETE FROM user_tokens WHERE user_id = @user_id;

-- name: AuditInsert :exec
INSERT INTO audit_log (organizer_id, id, at, actor, actor_kind, action, event_id, subject, detail)
VALUES (@organizer_id, @id, statement_timestamp(), @actor, @actor_kind, @action, @event_id, @subject, @detail);

-- name: AuditList :many
SELECT * FROM audit_log WHERE organizer_id = @organizer_id AND id < @before ORDER BY id DESC LIMIT @max_rows;

-- name: AuditListEvent :many
SELECT * FROM audit_log WHERE organizer_id = @organizer_id AND event_id = @event_id::bigint AND id < @before ORDER BY id DESC LIMIT @max_rows;
