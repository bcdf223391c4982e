-- +goose Up

-- layout counts the versions of what the event has to sell: a node that knows another one reads it anew.
ALTER TABLE events
    ADD plan_id      bigint,
    ADD plan_version integer,
    ADD layout       integer NOT NULL DEFAULT 1,
    ADD orphan_rule  boolean NOT NULL DEFAULT false,
    ADD whole_tables boolean NOT NULL DEFAULT false, -- whether some are sold as a whole
    ADD order_limit  integer CHECK (order_limit > 0),
    ADD FOREIGN KEY (plan_id, plan_version) REFERENCES plan_versions;

-- Type 1 is what is sold to whoever names none.
CREATE TABLE ticket_types (
    event_id bigint NOT NULL REFERENCES events,
    id       integer NOT NULL CHECK (id > 0),
    name     text NOT NULL CHECK (name <> ''),
    PRIMARY KEY (event_id, id),
    UNIQUE (event_id, name)
);

-- A category and type costs what the newest row that has started says. A tier ends where the next one starts, so there is never a gap
-- and never two prices.
CREATE TABLE prices (
    event_id    bigint NOT NULL,
    category_id integer NOT NULL,
    type_id     integer NOT NULL,
    starts_at   timestamptz NOT NULL,
    amount      bigint NOT NULL CHECK (amount BETWEEN 0 AND 1000000000),
    PRIMARY KEY (event_id, category_id, type_id, starts_at),
    FOREIGN KEY (event_id, category_id) REFERENCES categories,
    FOREIGN KEY (event_id, type_id) REFERENCES ticket_types
);

INSERT INTO ticket_types (event_id, id, name) SELECT id, 1, 'standard' FROM events;
INSERT INTO prices (event_id, category_id, type_id, starts_at, amount)
SELECT event_id, category_id, 1, '2000-01-01Z', min(price) FROM seats GROUP BY event_id, category_id;

CREATE VIEW prices_now AS
SELECT DISTINCT ON (p.event_id, p.category_id, p.type_id) p.event_id, p.category_id, p.type_id, t.name AS type, p.amount
FROM prices p JOIN ticket_types t ON t.event_id = p.event_id AND t.id = p.type_id
WHERE p.starts_at <= statement_timestamp()
ORDER BY p.event_id, p.category_id, p.type_id, p.starts_at DESC;

-- An allotment. Its seats are sold with the keys in channel_keys alone, until it releases itself release_before the event starts.
CREATE TABLE channels (
    event_id       bigint NOT NULL REFERENCES events,
    id             integer NOT NULL CHECK (id > 0),
    name           text NOT NULL CHECK (name <> ''),
    release_before interval CHECK (release_before > interval '0'),
    created_at     timestamptz NOT NULL,
    PRIMARY KEY (event_id, id),
    CONSTRAINT channels_name UNIQUE (event_id, name)
);

CREATE TABLE channel_keys (
    event_id   bigint NOT NULL,
    key_id     uuid NOT NULL,
    channel_id integer NOT NULL,
    PRIMARY KEY (event_id, key_id, channel_id),
    FOREIGN KEY (event_id, channel_id) REFERENCES channels ON DELETE CASCADE
);

-- An area that has grown owns places behind those it began with: all that are its own below beyond.
ALTER TABLE areas ADD beyond integer;
UPDATE areas SET beyond = first_seat + capacity;
ALTER TABLE areas ALTER beyond SET NOT NULL;

ALTER TABLE seats DROP COLUMN price, ADD channel_id integer;

-- Where a numbered seat is. Apart from seats, so that a sale does not copy it and a new drawing does not touch a row that sells.
CREATE TABLE spots (
    event_id   bigint NOT NULL,
    seat_id    integer NOT NULL,
    line       integer NOT NULL, -- index of the row in its section
    run        integer NOT NULL, -- neighbours are of one run, at positions that differ by one
    pos        integer NOT NULL,
    distance   integer NOT NULL CHECK (distance >= 0), -- from the focal point
    x          double precision NOT NULL,
    y          double precision NOT NULL,
    attributes smallint NOT NULL DEFAULT 0,
    tags       text[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (event_id, seat_id) -- no foreign key: its check would lock rows that sell
);

-- Events made before had no drawing: their rows are straight, one behind another, and their sections too.
INSERT INTO spots (event_id, seat_id, line, run, pos, distance, x, y)
SELECT event_id, id, line - first_line, line, pos, line * 1000 + abs(2 * pos - width) * 500, pos - width / 2.0, line
FROM (
    SELECT event_id, id, line, min(line) OVER (PARTITION BY event_id, section) AS first_line,
           row_number() OVER (PARTITION BY event_id, line ORDER BY id) AS pos, count(*) OVER (PARTITION BY event_id, line) AS width
    FROM (
        SELECT event_id, id, section, dense_rank() OVER (PARTITION BY event_id ORDER BY first_seat) AS line
        FROM (
            SELECT event_id, id, section, min(id) OVER (PARTITION BY event_id, section, row_label) AS first_seat
            FROM seats WHERE area_id IS NULL
        ) seat
    ) lined
) placed;

-- A block of a new plan is on seats that the plan no longer has. Nobody lifts it but a plan that has them again.
ALTER TABLE blocks ADD plan_version integer;

-- +goose Down
ALTER TABLE blocks DROP COLUMN plan_version;
ALTER TABLE areas DROP COLUMN beyond;
ALTER TABLE seats ADD price bigint;
UPDATE seats s SET price = (
    SELECT amount FROM prices p WHERE p.event_id = s.event_id AND p.category_id = s.category_id AND p.type_id = 1 AND p.starts_at <= now()
    ORDER BY p.starts_at DESC LIMIT 1);
ALTER TABLE seats ALTER price SET NOT NULL, DROP COLUMN channel_id;
DROP VIEW prices_now;
DROP TABLE spots, channel_keys, channels, prices, ticket_types;
ALTER TABLE events DROP COLUMN plan_id, DROP COLUMN plan_version, DROP COLUMN layout, DROP COLUMN orphan_rule, DROP COLUMN whole_tables, DROP COLUMN order_limit;
