-- name: HoldPageInsert :exec
INSERT INTO hold_pages (event_id, hold_id, session, gen, node) VALUES (@event_id, @hold_id, @session, @gen, @node);

-- name: HoldPageShow :execrows
-- The hold's row is locked against its end, which removes the pages: none comes after that.
WITH hold AS MATERIALIZED (
    SELECT h.event_id, h.id FROM holds h
    WHERE h.event_id = @event_id AND h.id = @hold_id AND h.buyer = @buyer AND h.status = 'open' AND h.expires_at > statement_timestamp()
    FOR SHARE
)
INSERT INTO hold_pages (event_id, hold_id, session, gen, node)
SELECT hold.event_id, hold.id, @session, @gen, @node FROM hold
WHERE (SELECT count(*) FROM hold_pages o WHERE o.event_id = @event_id AND o.hold_id = @hold_id AND o.session <> @session) < @max_pages::bigint
ON CONFLICT (event_id, hold_id, session) DO UPDATE SET gen = excluded.gen, node = excluded.node, gone_at = NULL
WHERE hold_pages.gen <= excluded.gen;

-- name: HoldPagesGone :execrows
-- Rows are locked in the order of their keys, as in HoldPagesBack, or two crowds could deadlock.
WITH page AS MATERIALIZED (
    SELECT unnest(@sessions::text[]) AS session, unnest(@gens::bigint[]) AS gen, unnest(@nodes::uuid[]) AS node
), locked AS MATERIALIZED (
    SELECT hp.event_id, hp.hold_id, hp.session, p.gen, p.node FROM hold_pages hp JOIN page p ON p.session = hp.session
    WHERE hp.gen = p.gen AND hp.node = p.node AND hp.gone_at IS NULL
    ORDER BY hp.event_id, hp.hold_id, hp.session FOR UPDATE OF hp
)
UPDATE hold_pages hp SET gone_at = statement_timestamp() FROM locked l
WHERE hp.event_id = l.event_id AND hp.hold_id = l.hold_id AND hp.session = l.session
  AND hp.gen = l.gen AND hp.node = l.node AND hp.gone_at IS NULL;

-- name: HoldPagesBack :execrows
-- Of the connections of one page, the newest counts.
WITH page AS MATERIALIZED (
    SELECT DISTINCT ON (p.session) p.session, p.gen, p.node
    FROM (SELECT unnest(@sessions::text[]) AS session, unnest(@gens::bigint[]) AS gen, unnest(@nodes::uuid[]) AS node) p
    ORDER BY p.session, p.gen DESC
), locked AS MATERIALIZED (
    SELECT hp.event_id, hp.hold_id, hp.session, p.gen, p.node FROM hold_pages hp JOIN page p ON p.session = hp.session
    WHERE hp.gen <= p.gen
    ORDER BY hp.event_id, hp.hold_id, hp.session FOR UPDATE OF hp
)
UPDATE hold_pages hp SET gen = l.gen, node = l.node, gone_at = NULL FROM locked l
WHERE hp.event_id = l.event_id AND hp.hold_id = l.hold_id AND hp.session = l.session AND hp.gen <= l.gen;

-- name: NodeBeat :one
-- fresh says that the node was unknown: its first beat, or others have taken it for dead.
INSERT INTO nodes (id, seen_at, whole_since) VALUES (@id, statement_timestamp(), statement_timestamp())
ON CONFLICT (id) DO UPDATE SET seen_at = statement_timestamp(),
    whole_since = CASE WHEN nodes.seen_at > statement_timestamp() - @gap::interval THEN nodes.whole_since ELSE statement_timestamp() END
RETURNING (xmax = 0)::boolean AS fresh;

-- name: NodesDead :many
-- Takes the rows of nodes that are silent, if the node that asks has been heard all the time itself.
SELECT n.id FROM nodes n
WHERE n.seen_at <= statement_timestamp() - @silence::interval
  AND EXISTS (SELECT FROM nodes me WHERE me.id = @me AND me.seen_at > statement_timestamp() - @gap::interval
              AND me.whole_since <= statement_timestamp() - @silence::interval)
ORDER BY n.id FOR UPDATE OF n SKIP LOCKED;

-- name: NodesDelete :execrows
DELETE FROM nodes WHERE id = ANY(@ids::uuid[]);

-- name: HoldPagesOfNodesGone :execrows
WITH locked AS MATERIALIZED (
    SELECT hp.event_id, hp.hold_id, hp.session FROM hold_pages hp WHERE hp.node = ANY(@nodes::uuid[]) AND hp.gone_at IS NULL
    ORDER BY hp.event_id, hp.hold_id, hp.session FOR UPDATE
)
UPDATE hold_pages hp SET gone_at = statement_timestamp() FROM locked l
WHERE hp.event_id = l.event_id AND hp.hold_id = l.hold_id AND hp.session = l.session AND hp.node = ANY(@nodes::uuid[]) AND hp.gone_at IS NULL;

-- name: HoldPageCounts :one
SELECT count(*) AS pages, count(gone_at) AS gone FROM hold_pages;

-- name: HoldsLeft :many
-- Holds that nobody looks at any more. Those that are being paid for are not among them.
SELECT DISTINCT h.event_id, h.id FROM hold_pages p JOIN holds h ON h.event_id = p.event_id AND h.id = p.hold_id
WHERE p.gone_at <= statement_timestamp() - @grace::interval
  AND h.status = 'open' AND h.checkout_at IS NULL AND h.expires_at > statement_timestamp()
  AND NOT EXISTS (SELECT FROM hold_pages o WHERE o.event_id = h.event_id AND o.hold_id = h.id
                  AND (o.gone_at IS NULL OR o.gone_at > statement_timestamp() - @grace::interval))
LIMIT @max_rows;

-- name: HoldLockLeft :one
-- Passes over a hold that its owner is writing.
SELECT id FROM holds
WHERE event_id = @event_id AND id = @id AND status = 'open' AND checkout_at IS NULL AND expires_at > statement_timestamp()
FOR UPDATE SKIP LOCKED;

-- name: HoldPagesLock :many
-- A statement of its own, after the hold's: a page that comes back either came before it, or waits until the hold has ended.
SELECT (gone_at IS NOT NULL AND gone_at <= statement_timestamp() - @grace::interval)::boolean AS left_long_ago
FROM hold_pages WHERE event_id = @event_id AND hold_id = @hold_id ORDER BY session FOR UPDATE;

-- name: VerifyEndedHoldPages :one
SELECT count(*) FROM hold_pages p JOIN holds h ON h.event_id = p.event_id AND h.id = p.hold_id WHERE h.status <> 'open';
