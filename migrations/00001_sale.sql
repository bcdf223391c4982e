-- +goose Up

CREATE TABLE organizers (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL CHECK (name <> ''),
    created_at timestamptz NOT NULL DEFAULT now()
);

-- The secret itself is shown once and never stored.
CREATE TABLE api_keys (
    id           uuid PRIMARY KEY,
    organizer_id bigint NOT NULL REFERENCES organizers,
    name         text NOT NULL,
    scope        text NOT NULL CHECK (scope IN ('organizer', 'partner')),
    secret_hash  bytea NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    revoked_at   timestamptz
);

-- Sales lock the event's row FOR SHARE; pause and cancel update it and so wait for them, and they for it.
CREATE TABLE events (
    id             bigint PRIMARY KEY,
    organizer_id   bigint NOT NULL REFERENCES organizers,
    name           text NOT NULL CHECK (name <> ''),
    venue          text NOT NULL,
    starts_at      timestamptz NOT NULL,
    timezone       text NOT NULL,
    currency       text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    payment        text NOT NULL CHECK (payment IN ('none', 'required')),
    status         text NOT NULL CHECK (status IN ('draft', 'on_sale', 'paused', 'ended', 'cancelled')),
    sale_starts_at timestamptz NOT NULL,
    sale_ends_at   timestamptz NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    unwound_at     timestamptz, -- when the holds and bookings of a cancelled event had all been undone
    CONSTRAINT events_sale_window CHECK (sale_starts_at < sale_ends_at)
);
CREATE INDEX events_to_unwind ON events (id) WHERE status = 'cancelled' AND unwound_at IS NULL;
CREATE INDEX events_by_organizer ON events (organizer_id, starts_at, id);

CREATE TABLE categories (
    event_id bigint NOT NULL REFERENCES events,
    id       integer NOT NULL,
    name     text NOT NULL,
    PRIMARY KEY (event_id, id),
    UNIQUE (event_id, name)
);

-- A general admission area owns the unnumbered seats first_seat … first_seat + capacity - 1.
CREATE TABLE areas (
    event_id    bigint NOT NULL REFERENCES events,
    id          integer NOT NULL,
    name        text NOT NULL,
    category_id integer NOT NULL,
    first_seat  integer NOT NULL,
    capacity    integer NOT NULL CHECK (capacity > 0),
    PRIMARY KEY (event_id, id),
    UNIQUE (event_id, name),
    FOREIGN KEY (event_id, category_id) REFERENCES categories
);

-- Everything sellable is a row here, numbered or not. Ids run along the rows of a section, so neighbours have neighbouring ids.
-- No index names a column that a sale changes, and pages keep room, so that updates stay HOT.
CREATE TABLE seats (
    event_id    bigint NOT NULL REFERENCES events,
    id          integer NOT NULL CHECK (id > 0),
    section     text NOT NULL,
    row_label   text NOT NULL,
    number      text NOT NULL,
    category_id integer NOT NULL,
    area_id     integer,
    price       bigint NOT NULL CHECK (price BETWEEN 0 AND 1000000000),
    fence       bigint NOT NULL DEFAULT 0,
    hold_id     uuid,
    held_until  timestamptz,
    buyer       uuid,
    booking_id  uuid,
    block_id    uuid,
    PRIMARY KEY (event_id, id),
    FOREIGN KEY (event_id, category_id) REFERENCES categories,
    CONSTRAINT seats_buyer_has_booking CHECK ((buyer IS NULL) = (booking_id IS NULL)),
    CONSTRAINT seats_hold_has_time CHECK ((hold_id IS NULL) = (held_until IS NULL)),
    CONSTRAINT seats_one_state CHECK (num_nonnulls(buyer, hold_id, block_id) <= 1)
) WITH (fillfactor = 70);

-- Locked before a buyer's live holds are counted, so that the count cannot pass the cap.
CREATE TABLE buyer_caps (
    event_id bigint NOT NULL,
    buyer    uuid NOT NULL,
    PRIMARY KEY (event_id, buyer)
) WITH (fillfactor = 50);

CREATE TABLE holds (
    event_id     bigint NOT NULL,
    id           uuid NOT NULL,
    buyer        uuid NOT NULL,
    page_session text,
    status       text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'booked', 'released', 'expired')),
    acquired_at  timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    ends_at      timestamptz NOT NULL,
    extensions   integer NOT NULL DEFAULT 0,
    checkout_at  timestamptz,
    booking_id   uuid,
    PRIMARY KEY (event_id, id),
    CONSTRAINT holds_end CHECK (expires_at <= ends_at),
    CONSTRAINT holds_booked_has_booking CHECK ((status = 'booked') = (booking_id IS NOT NULL))
) WITH (fillfactor = 70);
CREATE INDEX holds_open_by_buyer ON holds (event_id, buyer) WHERE status = 'open';
CREATE INDEX holds_open_by_expiry ON holds (expires_at) WHERE status = 'open';

CREATE TABLE hold_seats (
    event_id bigint NOT NULL,
    hold_id  uuid NOT NULL,
    seat_id  integer NOT NULL,
    fence    bigint NOT NULL,
    type     text NOT NULL,
    price    bigint NOT NULL,
    PRIMARY KEY (event_id, hold_id, seat_id),
    FOREIGN KEY (event_id, hold_id) REFERENCES holds
);

CREATE TABLE bookings (
    event_id          bigint NOT NULL,
    id                uuid NOT NULL,
    number            text NOT NULL,
    buyer             uuid NOT NULL,
    status            text NOT NULL DEFAULT 'confirmed' CHECK (status IN ('confirmed', 'cancelled')),
    buyer_name        text NOT NULL,
    buyer_email       text NOT NULL,
    payment_reference text,
    hold_id           uuid,
    total             bigint NOT NULL CHECK (total >= 0),
    currency          text NOT NULL,
    created_at        timestamptz NOT NULL,
    cancelled_at      timestamptz,
    PRIMARY KEY (event_id, id),
    CONSTRAINT bookings_number UNIQUE (event_id, number),
    CONSTRAINT bookings_cancelled_has_time CHECK ((status = 'cancelled') = (cancelled_at IS NOT NULL))
);
CREATE INDEX bookings_recent ON bookings (event_id, created_at, id);
CREATE INDEX bookings_by_buyer ON bookings (buyer, created_at, event_id, id); -- a buyer's own, over all events

-- tickets_live_seat is the second guard: a writer with a wrong condition still cannot sell a seat twice.
CREATE TABLE tickets (
    event_id   bigint NOT NULL,
    booking_id uuid NOT NULL,
    seat_id    integer NOT NULL,
    fence      bigint NOT NULL,
    type       text NOT NULL,
    price      bigint NOT NULL,
    code       text NOT NULL,
    status     text NOT NULL DEFAULT 'valid' CHECK (status IN ('valid', 'cancelled')),
    PRIMARY KEY (event_id, booking_id, seat_id),
    FOREIGN KEY (event_id, booking_id) REFERENCES bookings
);
CREATE UNIQUE INDEX tickets_live_seat ON tickets (event_id, seat_id) WHERE status = 'valid';

-- Append-only. A seat's fence grows by one at each change of ownership, so (seat, fence) names the change.
CREATE TABLE seat_ledger (
    event_id bigint NOT NULL,
    seat_id  integer NOT NULL,
    fence    bigint NOT NULL,
    action   text NOT NULL CHECK (action IN ('held', 'released', 'expired', 'sold', 'cancelled', 'blocked', 'unblocked')),
    actor    uuid,
    ref      uuid NOT NULL,
    at       timestamptz NOT NULL,
    PRIMARY KEY (event_id, seat_id, fence)
);

CREATE TABLE blocks (
    event_id   bigint NOT NULL,
    id         uuid NOT NULL,
    reason     text NOT NULL,
    created_by uuid NOT NULL,
    created_at timestamptz NOT NULL,
    removed_at timestamptz,
    PRIMARY KEY (event_id, id)
);

-- One row per fact about a booking, written by its transaction; handed_at is set when its job is queued.
CREATE TABLE outbox (
    event_id   bigint NOT NULL,
    booking_id uuid NOT NULL,
    kind       text NOT NULL CHECK (kind IN ('booking_confirmed', 'booking_cancelled')),
    created_at timestamptz NOT NULL,
    handed_at  timestamptz,
    PRIMARY KEY (event_id, booking_id, kind)
);
CREATE INDEX outbox_waiting ON outbox (created_at) WHERE handed_at IS NULL;

-- Successes only, each the last row of its own transaction. event_id 0: keys of an organizer, not of an event.
CREATE TABLE idempotency_keys (
    event_id    bigint NOT NULL,
    caller      uuid NOT NULL,
    key         text NOT NULL,
    fingerprint bytea NOT NULL,
    result      jsonb NOT NULL,
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (event_id, caller, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

-- +goose Down
DROP TABLE idempotency_keys, outbox, blocks, seat_ledger, tickets, bookings, hold_seats, holds, buyer_caps, seats, areas, categories, events, api_keys, organizers;
