-- name: DraftInsert :execrows
INSERT INTO drafts (event_id, plan_id, plan_version, next_item) VALUES (@event_id, @plan_id, @plan_version, @next_item)
ON CONFLICT (event_id) DO NOTHING;

-- name: DraftGet :one
SELECT * FROM drafts WHERE event_id = @event_id;

-- name: DraftLock :one
-- Writers of a draft take turns. What they compare is read by the statements after this one, which see what the turn before has written.
SELECT * FROM drafts WHERE event_id = @event_id FOR UPDATE;

-- name: DraftPages :many
SELECT item, page, body, saved_at FROM draft_pages WHERE event_id = @event_id ORDER BY item, page;

-- name: DraftPageGet :one
SELECT body, saved_at, saved_by FROM draft_pages WHERE event_id = @event_id AND item = @item AND page = @page;

-- name: DraftPagesWrite :exec
INSERT INTO draft_pages (event_id, item, page, body, saved_at, saved_by)
SELECT @event_id, unnest(@items::integer[]), unnest(@pages::text[]), unnest(@bodies::text[])::json,
       CASE WHEN sqlc.narg('saved_by')::uuid IS NOT NULL THEN statement_timestamp() END, sqlc.narg('saved_by')
ON CONFLICT (event_id, item, page) DO UPDATE SET body = excluded.body, saved_at = excluded.saved_at, saved_by = excluded.saved_by;

-- name: DraftItems :many
SELECT DISTINCT item FROM draft_pages WHERE event_id = @event_id AND item > 0 ORDER BY item;

-- name: DraftItemsDelete :execrows
DELETE FROM draft_pages WHERE event_id = @event_id AND item = ANY(@items::integer[]);

-- name: DraftTake :one
-- The next fence, for the whole or for a page.
UPDATE drafts SET fence = fence + 1,
    group_fence = CASE WHEN @whole::boolean THEN fence + 1 ELSE group_fence END,
    group_holder = CASE WHEN @whole::boolean THEN @holder::uuid ELSE group_holder END,
    member_fence = CASE WHEN @whole::boolean THEN member_fence ELSE fence + 1 END
WHERE event_id = @event_id RETURNING fence;

-- name: DraftPageTake :execrows
UPDATE draft_pages SET fence = @fence, holder = @holder WHERE event_id = @event_id AND item = @item AND page = @page;

-- name: DraftSave :one
-- The next revision, if the fence is the newest that counts, and the caller's: that of the whole, with none of a page after it; or that of
-- the page, with none of the whole after it. The draft is locked.
UPDATE drafts d SET revision = d.revision + 1, next_item = d.next_item + @new_items
WHERE d.event_id = @event_id AND (
    d.group_fence = @fence AND d.group_holder = @holder::uuid AND d.member_fence < @fence
    OR d.group_fence < @fence AND EXISTS (
        SELECT FROM draft_pages p
        WHERE p.event_id = @event_id AND p.item = sqlc.narg('item')::integer AND p.page = sqlc.narg('page')::text
          AND p.fence = @fence AND p.holder = @holder::uuid))
RETURNING d.revision;

-- name: DraftRebase :exec
UPDATE drafts SET plan_id = @plan_id, plan_version = @plan_version WHERE event_id = @event_id;

-- name: DraftPublished :exec
UPDATE drafts SET plan_id = @plan_id, plan_version = @plan_version, published_at = statement_timestamp() WHERE event_id = @event_id;
