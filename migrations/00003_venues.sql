-- +goose Up

CREATE TABLE venues (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organizer_id bigint NOT NULL REFERENCES organizers,
    name         text NOT NULL CHECK (name <> ''),
    UNIQUE (organizer_id, name)
);

CREATE TABLE plans (
    id           bigint PRIMARY KEY,
    organizer_id bigint NOT NULL REFERENCES organizers,
    venue_id     bigint NOT NULL REFERENCES venues,
    name         text NOT NULL CHECK (name <> ''),
    created_at   timestamptz NOT NULL
);
CREATE INDEX plans_by_organizer ON plans (organizer_id, created_at, id);

-- A draft has errors, a validated version has none, and events are made of published ones, which never change.
CREATE TABLE plan_versions (
    plan_id      bigint NOT NULL REFERENCES plans,
    number       integer NOT NULL CHECK (number > 0),
    status       text NOT NULL CHECK (status IN ('draft', 'validated', 'published')),
    document     bytea NOT NULL, -- our own format, gzipped
    digest       bytea NOT NULL, -- SHA-256 of it before
    counts       jsonb NOT NULL,
    errors       integer NOT NULL,
    warnings     integer NOT NULL,
    created_by   uuid NOT NULL,
    created_at   timestamptz NOT NULL,
    published_at timestamptz,
    PRIMARY KEY (plan_id, number),
    CONSTRAINT plan_versions_sound CHECK (status = 'draft' OR errors = 0),
    CONSTRAINT plan_versions_published CHECK ((status = 'published') = (published_at IS NOT NULL))
);

-- +goose Down
DROP TABLE plan_versions, plans, venues;
