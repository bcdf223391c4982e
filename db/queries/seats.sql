-- name: SeatInsert :copyfrom
INSERT INTO seats (event_id, id, section, row_label, number, category_id, area_id)
VALUES (@event_id, @id, @section, @row_label, @number, @category_id, @area_id);

-- name: SpotInsert :copyfrom
INSERT INTO spots (event_id, seat_id, line, run, pos, distance, x, y, attributes, tags)
VALUES (@event_id, @seat_id, @line, @run, @pos, @distance, @x, @y, @attributes, @tags);

-- name: SeatList :many
-- Numbered seats in id order; areas are counted by EventAvailability. What the caller has no channel for is blocked to them.
WITH cost AS MATERIALIZED (
    SELECT p.category_id, p.amount FROM prices_now p WHERE p.event_id = @event_id AND p.type_id = 1
)
SELECT s.id, s.section, s.row_label, s.number, c.name AS category, coalesce(p.amount, 0)::bigint AS price, s.fence,
       l.attributes, l.tags,
       (CASE WHEN s.buyer IS NOT NULL THEN 'booked'
             WHEN s.block_id IS NOT NULL THEN 'blocked'
             WHEN s.held_until > statement_timestamp() THEN 'held'
             WHEN NOT coalesce(s.channel_id, 0) = ANY(@channels::integer[]) AND NOT @any_channel::boolean THEN 'blocked'
             ELSE 'free' END)::text AS state
FROM seats s JOIN categories c ON c.event_id = s.event_id AND c.id = s.category_id
JOIN spots l ON l.event_id = s.event_id AND l.seat_id = s.id
LEFT JOIN cost p ON p.category_id = s.category_id
WHERE s.event_id = @event_id AND s.area_id IS NULL
  AND (sqlc.narg('section')::text IS NULL OR s.section = sqlc.narg('section'))
ORDER BY s.id;

-- name: SeatsByID :many
-- What belongs to a seat is looked up by its whole key, row by row: a join could be planned for the whole house.
WITH cost AS MATERIALIZED (
    SELECT p.category_id, p.amount FROM prices_now p WHERE p.event_id = @event_id AND p.type_id = 1
)
SELECT s.id, s.section, s.row_label, s.number, s.category_id, c.name AS category,
       coalesce((SELECT p.amount FROM cost p WHERE p.category_id = s.category_id), 0)::bigint AS price, s.fence,
       s.hold_id, s.held_until, s.buyer, s.area_id, s.channel_id,
       coalesce((SELECT l.attributes FROM spots l WHERE l.event_id = s.event_id AND l.seat_id = s.id), 0)::smallint AS attributes,
       coalesce((SELECT l.tags FROM spots l WHERE l.event_id = s.event_id AND l.seat_id = s.id), '{}')::text[] AS tags,
       ARRAY(SELECT h.buyer FROM holds h WHERE h.event_id = s.event_id AND h.id = s.hold_id)::uuid[] AS holder, -- none or one
       (CASE WHEN s.buyer IS NOT NULL THEN 'booked'
             WHEN s.block_id IS NOT NULL THEN 'blocked'
             WHEN s.held_until > statement_timestamp() THEN 'held'
             WHEN NOT coalesce(s.channel_id, 0) = ANY(@channels::integer[]) AND NOT @any_channel::boolean THEN 'blocked'
             ELSE 'free' END)::text AS state
FROM seats s JOIN categories c ON c.event_id = s.event_id AND c.id = s.category_id
WHERE s.event_id = @event_id AND s.id = ANY(@ids::integer[])
ORDER BY s.id;

-- name: SeatLock :many
-- No state predicate: every writer of several seats takes their rows in this order, whatever it wants to do with them.
SELECT id FROM seats WHERE event_id = @event_id AND id = ANY(@ids::integer[])
ORDER BY id FOR UPDATE;

-- name: SeatHold :many
-- Gives free seats, and seats whose hold has run out, to a hold. Fewer rows than ids: somebody else has the rest, or the caller has no
-- channel for them, or they are not sold as the type.
-- fences: the fence a caller saw, or -1; types: "" is the event's first; places: whether they are places of an area, which nobody can
-- ask for by their ids; channels: those that the caller may sell, 0 for none.
WITH cost AS MATERIALIZED (
    SELECT p.category_id, p.type_id, p.type, p.amount FROM prices_now p WHERE p.event_id = @event_id
), asked AS (
    SELECT unnest(@ids::integer[]) AS id, unnest(@fences::bigint[]) AS fence, unnest(@types::text[]) AS type
), want AS MATERIALIZED (
    SELECT a.id, a.fence, p.type, p.amount AS price
    FROM asked a JOIN seats s ON s.event_id = @event_id AND s.id = a.id
    JOIN cost p ON p.category_id = s.category_id AND (p.type = a.type OR a.type = '' AND p.type_id = 1)
), held AS (
    UPDATE seats s
    SET hold_id = @hold_id, held_until = @held_until::timestamptz, fence = s.fence + 1
    FROM want w
    WHERE s.event_id = @event_id AND s.id = w.id
      AND s.buyer IS NULL AND s.block_id IS NULL
      AND (s.hold_id IS NULL OR s.held_until <= statement_timestamp())
      AND (w.fence < 0 OR s.fence = w.fence) AND (s.area_id IS NOT NULL) = @places::boolean
      AND (@any_channel::boolean OR coalesce(s.channel_id, 0) = ANY(@channels::integer[]))
    RETURNING s.id, s.section, s.row_label, s.number, w.price, s.fence, w.type
), kept AS (
    INSERT INTO hold_seats (event_id, hold_id, seat_id, fence, type, price)
    SELECT @event_id, @hold_id, id, fence, type, price FROM held
), logged AS (
    INSERT INTO seat_ledger (event_id, seat_id, fence, action, actor, ref, at)
    SELECT @event_id, id, fence, 'held', @actor::uuid, @hold_id, statement_timestamp() FROM held
)
SELECT h.id, h.section, h.row_label, h.number, h.price, h.fence, h.type::text AS type FROM held h ORDER BY h.id;

-- name: SeatRelease :many
-- Frees the seats that a hold still owns, by the fences it was given. Seats it has lost are left alone.
WITH want AS (
    SELECT unnest(@ids::integer[]) AS id, unnest(@fences::bigint[]) AS fence
), freed AS (
    UPDATE seats s
    SET hold_id = NULL, held_until = NULL, fence = s.fence + 1
    FROM want w
    WHERE s.event_id = @event_id AND s.id = w.id AND s.fence = w.fence AND s.hold_id = @hold_id
    RETURNING s.id, s.fence
), logged AS (
    INSERT INTO seat_ledger (event_id, seat_id, fence, action, actor, ref, at)
    SELECT @event_id, id, fence, @action::text, sqlc.narg('actor')::uuid, @hold_id, statement_timestamp() FROM freed
)
SELECT f.id FROM freed f ORDER BY f.id;

-- name: SeatExtend :many
UPDATE seats s SET held_until = @held_until::timestamptz
WHERE s.event_id = @event_id AND s.hold_id = @hold_id AND s.id = ANY(@ids::integer[])
  AND s.held_until > statement_timestamp()
RETURNING s.id;

-- name: SeatBlock :many
WITH taken AS (
    UPDATE seats s
    SET block_id = @block_id, hold_id = NULL, held_until = NULL, fence = s.fence + 1
    WHERE s.event_id = @event_id AND s.id = ANY(@ids::integer[])
      AND s.buyer IS NULL AND s.block_id IS NULL
      AND (s.hold_id IS NULL OR s.held_until <= statement_timestamp())
    RETURNING s.id, s.fence
), logged AS (
    INSERT INTO seat_ledger (event_id, seat_id, fence, action, actor, ref, at)
    SELECT @event_id, id, fence, 'blocked', @actor::uuid, @block_id, statement_timestamp() FROM taken
)
SELECT t.id FROM taken t ORDER BY t.id;

-- name: SeatUnblock :many
WITH freed AS (
    UPDATE seats s SET block_id = NULL, fence = s.fence + 1
    WHERE s.event_id = @event_id AND s.id = ANY(@ids::integer[]) AND s.block_id = @block_id
    RETURNING s.id, s.fence
), logged AS (
    INSERT INTO seat_ledger (event_id, seat_id, fence, action, actor, ref, at)
    SELECT @event_id, id, fence, 'unblocked', @actor::uuid, @block_id, statement_timestamp() FROM freed
)
SELECT f.id FROM freed f ORDER BY f.id;

-- name: SeatCancel :many
-- Frees the seats of a booking that is being cancelled.
WITH freed AS (
    UPDATE seats s SET buyer = NULL, booking_id = NULL, fence = s.fence + 1
    WHERE s.event_id = @event_id AND s.id = ANY(@ids::integer[]) AND s.booking_id = @booking_id
    RETURNING s.id, s.fence
), logged AS (
    INSERT INTO seat_ledger (event_id, seat_id, fence, action, actor, ref, at)
    SELECT @event_id, id, fence, 'cancelled', @actor::uuid, @booking_id, statement_timestamp() FROM freed
)
SELECT f.id FROM freed f ORDER BY f.id;

-- name: SeatPickUnits :many
-- Free unnumbered seats of an area from a seat on, passing over those that somebody is writing. The rows are locked by the
-- SELECT itself: as a LIMIT sub-select of the UPDATE the planner may run it once per row and take far more than asked for.
-- The bounds are not a pair on one column, and what makes a place free is in a CASE, because the planner must not believe that free
-- places are few: it would read and sort all that is left of a floor (3 ms of 12,000 places) instead of walking the index to the first.
SELECT s.id FROM seats s
WHERE s.event_id = @event_id
  AND s.id >= greatest(@from_seat::integer, (SELECT a.first_seat FROM areas a WHERE a.event_id = @event_id AND a.id = @area_id))
  AND (s.event_id, s.id) < (@event_id, (SELECT a.beyond FROM areas a WHERE a.event_id = @event_id AND a.id = @area_id))
  AND CASE WHEN s.area_id = @area_id::integer AND s.buyer IS NULL AND s.block_id IS NULL
                AND (s.hold_id IS NULL OR s.held_until <= statement_timestamp())
                AND coalesce(s.channel_id, 0) = ANY(@channels::integer[]) THEN true END
ORDER BY s.id LIMIT @quantity::integer FOR UPDATE SKIP LOCKED;

-- name: SeatPickUnitsWaiting :many
-- The same, waiting for rows that somebody is writing: only its answer may be "sold out".
SELECT s.id FROM seats s
WHERE s.event_id = @event_id AND s.area_id = @area_id::integer
  AND s.id >= (SELECT a.first_seat FROM areas a WHERE a.event_id = @event_id AND a.id = @area_id)
  AND s.id < (SELECT a.beyond FROM areas a WHERE a.event_id = @event_id AND a.id = @area_id)
  AND s.buyer IS NULL AND s.block_id IS NULL AND (s.hold_id IS NULL OR s.held_until <= statement_timestamp())
  AND coalesce(s.channel_id, 0) = ANY(@channels::integer[])
ORDER BY s.id LIMIT @quantity::integer FOR UPDATE;

-- name: SeatsNear :many
-- Free seats of one of the given categories around a lost one, nearest first: same row, same section, then by distance. The bounds are
-- parameters, so that the index is asked for them whatever the planner knows. Of the nearest, those that are for others to ask for are
-- left out.
WITH cost AS MATERIALIZED (
    SELECT p.category_id, p.amount FROM prices_now p WHERE p.event_id = @event_id AND p.type_id = 1
), near AS MATERIALIZED (
    SELECT s.id, s.section, s.row_label, s.number, s.category_id, s.fence,
           row_number() OVER (ORDER BY s.section = lost.section DESC, s.row_label = lost.row_label DESC, abs(s.id - lost.id)) AS place
    FROM seats lost, seats s
    WHERE lost.event_id = @event_id AND lost.id = @near::integer
      AND s.event_id = @event_id AND s.id BETWEEN @lowest::integer AND @highest::integer
      AND s.area_id IS NULL AND s.category_id = ANY(@categories::integer[]) AND s.id <> ALL(@leave_out::integer[])
      AND s.buyer IS NULL AND s.block_id IS NULL AND (s.hold_id IS NULL OR s.held_until <= statement_timestamp())
      AND (@any_channel::boolean OR coalesce(s.channel_id, 0) = ANY(@channels::integer[]))
    ORDER BY place LIMIT 4 * @max_rows::integer
)
SELECT n.id, n.section, n.row_label, n.number, c.name AS category,
       coalesce((SELECT p.amount FROM cost p WHERE p.category_id = n.category_id), 0)::bigint AS price, n.fence,
       (SELECT l.attributes FROM spots l WHERE l.event_id = @event_id AND l.seat_id = n.id)::smallint AS attributes
FROM near n JOIN categories c ON c.event_id = @event_id AND c.id = n.category_id
WHERE EXISTS (SELECT 1 FROM spots l WHERE l.event_id = @event_id AND l.seat_id = n.id AND (l.attributes & @not_with::smallint) = 0)
ORDER BY n.place LIMIT @max_rows::integer;

-- name: SeatHistory :many
SELECT fence, action, actor, ref, at FROM seat_ledger
WHERE event_id = @event_id AND seat_id = @seat_id AND fence < @before_fence::bigint
ORDER BY fence DESC LIMIT @max_rows;

-- name: SeatLockStates :many
-- SeatLock, and whether each seat is free once its row is ours.
SELECT id, (buyer IS NULL AND block_id IS NULL AND (hold_id IS NULL OR held_until <= statement_timestamp()))::boolean AS free
FROM seats WHERE event_id = @event_id AND id = ANY(@ids::integer[])
ORDER BY id FOR UPDATE;
