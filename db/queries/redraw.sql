-- name: RedrawSeats :many
-- What the event has to sell, or those of it with the given ids, and what keeps each from being taken off the plan. withdrawn: an
-- earlier plan has done that.
SELECT s.id, s.section, s.row_label, s.number, s.category_id, s.area_id,
       (b.plan_version IS NOT NULL)::boolean AS withdrawn,
       (CASE WHEN s.buyer IS NOT NULL THEN 'booked'
             WHEN s.held_until > statement_timestamp() THEN 'held'
             WHEN c.id IS NOT NULL AND (c.release_before IS NULL OR e.starts_at - c.release_before > statement_timestamp()) THEN 'allotted'
             ELSE 'free' END)::text AS state
FROM seats s JOIN events e ON e.id = s.event_id
LEFT JOIN blocks b ON b.event_id = s.event_id AND b.id = s.block_id
LEFT JOIN channels c ON c.event_id = s.event_id AND c.id = s.channel_id
WHERE s.event_id = @event_id AND (sqlc.narg('ids')::integer[] IS NULL OR s.id = ANY(sqlc.narg('ids')))
ORDER BY s.id;

-- name: RedrawAreas :many
SELECT id, name FROM areas WHERE event_id = @event_id ORDER BY id;

-- name: SpotDelete :exec
DELETE FROM spots WHERE event_id = @event_id;

-- name: SeatWithdraw :many
-- Takes seats off the plan, whoever had blocked them before. Fewer rows than ids: somebody has the rest.
WITH gone AS (
    UPDATE seats s
    SET block_id = @block_id::uuid, hold_id = NULL, held_until = NULL, fence = s.fence + 1
    WHERE s.event_id = @event_id AND s.id = ANY(@ids::integer[])
      AND s.buyer IS NULL AND (s.hold_id IS NULL OR s.held_until <= statement_timestamp())
    RETURNING s.id, s.fence
), logged AS (
    INSERT INTO seat_ledger (event_id, seat_id, fence, action, actor, ref, at)
    SELECT @event_id, id, fence, 'blocked', @actor::uuid, @block_id, statement_timestamp() FROM gone
)
SELECT g.id FROM gone g ORDER BY g.id;

-- name: SeatReturn :many
-- Puts seats that an earlier plan had taken off back on sale, or back into the block that they were in, if that has not been removed.
WITH back AS (
    UPDATE seats s SET fence = s.fence + 1, block_id = (
        SELECT b.id FROM seat_ledger l JOIN blocks b ON b.event_id = l.event_id AND b.id = l.ref
        WHERE l.event_id = s.event_id AND l.seat_id = s.id AND l.action = 'blocked' AND b.plan_version IS NULL AND b.removed_at IS NULL
        ORDER BY l.fence DESC LIMIT 1)
    WHERE s.event_id = @event_id AND s.id = ANY(@ids::integer[])
      AND s.block_id = ANY(ARRAY(SELECT b.id FROM blocks b WHERE b.event_id = @event_id AND b.plan_version IS NOT NULL))
    RETURNING s.id, s.fence, s.block_id
), logged AS (
    INSERT INTO seat_ledger (event_id, seat_id, fence, action, actor, ref, at)
    SELECT @event_id, id, fence, CASE WHEN block_id IS NULL THEN 'unblocked' ELSE 'blocked' END, @actor::uuid, coalesce(block_id, @block_id::uuid),
           statement_timestamp() FROM back
)
SELECT b.id FROM back b ORDER BY b.id;

-- name: SeatRecategorise :exec
-- A price level is no ownership: the fence stays.
UPDATE seats s SET category_id = w.category_id
FROM (SELECT unnest(@ids::integer[]) AS id, unnest(@category_ids::integer[]) AS category_id) w
WHERE s.event_id = @event_id AND s.id = w.id;

-- name: AreaRedraw :exec
UPDATE areas SET category_id = @category_id, capacity = @capacity, beyond = greatest(beyond, @beyond::integer)
WHERE event_id = @event_id AND id = @id;

-- name: PlanBlockInsert :exec
INSERT INTO blocks (event_id, id, reason, created_by, created_at, plan_version)
VALUES (@event_id, @id, @reason, @created_by, statement_timestamp(), @plan_version::integer);

-- name: CategoryAdd :exec
INSERT INTO categories (event_id, id, name) VALUES (@event_id, @id, @name);

-- name: EventSetPlan :exec
UPDATE events SET plan_id = @plan_id, plan_version = @plan_version, whole_tables = @whole_tables, layout = layout + 1 WHERE id = @id;
