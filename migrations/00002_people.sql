-- +goose Up

-- People who may act for their organizer. Who was removed stays as a row, because the audit log names them.
CREATE TABLE users (
    id            uuid PRIMARY KEY,
    organizer_id  bigint NOT NULL REFERENCES organizers,
    email         text NOT NULL,
    name          text NOT NULL,
    role          text NOT NULL CHECK (role IN ('owner', 'editor', 'box_office', 'door')),
    every_event   boolean NOT NULL,
    password_hash text, -- argon2id in PHC form; none until the invitation is accepted
    created_at    timestamptz NOT NULL,
    removed_at    timestamptz,
    CONSTRAINT users_owner_is_for_all CHECK (role <> 'owner' OR every_event)
);
CREATE UNIQUE INDEX users_email ON users (lower(email)) WHERE removed_at IS NULL;
CREATE INDEX users_by_organizer ON users (organizer_id, created_at, id) WHERE removed_at IS NULL;

-- Attempts to sign in since the last that succeeded, by the SHA-256 of the address, be it somebody's or nobody's.
CREATE TABLE attempts (
    address    bytea PRIMARY KEY,
    failures   integer NOT NULL,
    wait_until timestamptz NOT NULL
);
CREATE INDEX attempts_by_time ON attempts (wait_until);

-- The events of a user who is not for every event.
CREATE TABLE user_events (
    user_id  uuid NOT NULL REFERENCES users,
    event_id bigint NOT NULL REFERENCES events,
    PRIMARY KEY (user_id, event_id)
);

-- The id is the SHA-256 of the secret, which is stored nowhere.
CREATE TABLE user_sessions (
    id         bytea PRIMARY KEY,
    user_id    uuid NOT NULL REFERENCES users,
    created_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX user_sessions_by_user ON user_sessions (user_id, created_at);

-- One link of each kind works at a time: a new one drops the old.
CREATE TABLE user_tokens (
    hash       bytea PRIMARY KEY,
    user_id    uuid NOT NULL REFERENCES users,
    purpose    text NOT NULL CHECK (purpose IN ('invitation', 'reset')),
    expires_at timestamptz NOT NULL,
    CONSTRAINT user_tokens_one UNIQUE (user_id, purpose)
);

-- Append-only, each row written by the transaction of what it tells of. Ids are UUIDs of version 7, so they order by time.
CREATE TABLE audit_log (
    organizer_id bigint NOT NULL,
    id           uuid NOT NULL,
    at           timestamptz NOT NULL,
    actor        uuid, -- none for an operator
    actor_kind   text NOT NULL CHECK (actor_kind IN ('user', 'key', 'operator')),
    action       text NOT NULL,
    event_id     bigint,
    subject      text NOT NULL,
    detail       jsonb NOT NULL,
    PRIMARY KEY (organizer_id, id)
);
CREATE INDEX audit_log_by_event ON audit_log (organizer_id, event_id, id) WHERE event_id IS NOT NULL;

-- Users who are not removed, with all that decides what they may.
CREATE VIEW people AS
SELECT u.id, u.organizer_id, o.name AS organizer, u.email, u.name, u.role, u.every_event, u.password_hash, u.created_at,
       ARRAY(SELECT e.event_id FROM user_events e WHERE e.user_id = u.id ORDER BY e.event_id)::bigint[] AS events
FROM users u JOIN organizers o ON o.id = u.organizer_id
WHERE u.removed_at IS NULL;

-- +goose Down
DROP VIEW people;
DROP TABLE audit_log, user_tokens, user_sessions, user_events, attempts, users;
