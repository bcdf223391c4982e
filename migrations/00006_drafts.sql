-- +goose Up

-- What the editors of an event's plan have, as they have it. Who begins to edit gets the next fence: the whole (group) or one page
-- (member). A save names the fence that it was given, and is refused when another has been given since that excludes it.
CREATE TABLE drafts (
    event_id     bigint PRIMARY KEY REFERENCES events,
    plan_id      bigint NOT NULL, -- what it was made of
    plan_version integer NOT NULL,
    fence        bigint NOT NULL DEFAULT 0,
    group_fence  bigint NOT NULL DEFAULT 0,
    group_holder uuid,
    member_fence bigint NOT NULL DEFAULT 0, -- the newest of any page
    revision     bigint NOT NULL DEFAULT 0, -- grows with each save
    next_item    integer NOT NULL,          -- numbers of items are not used again
    published_at timestamptz,
    FOREIGN KEY (plan_id, plan_version) REFERENCES plan_versions
);

-- Item 0 is the event. A body is text as it was written: jsonb would give the members that others keep in a plan another order.
CREATE TABLE draft_pages (
    event_id bigint NOT NULL REFERENCES drafts,
    item     integer NOT NULL CHECK (item >= 0),
    page     text NOT NULL,
    body     json NOT NULL,
    fence    bigint NOT NULL DEFAULT 0,
    holder   uuid,
    saved_at timestamptz,
    saved_by uuid,
    PRIMARY KEY (event_id, item, page),
    CONSTRAINT draft_pages_known CHECK (CASE item WHEN 0 THEN page IN ('variables', 'plan') ELSE page IN ('details', 'prices', 'seats') END)
);

-- +goose Down
DROP TABLE draft_pages, drafts;
