-- +goose Up

-- Processes of the service. whole_since is when their beats began to come without a gap: one that was itself cut off may not say that others
-- are dead.
CREATE TABLE nodes (
    id          uuid PRIMARY KEY,
    seen_at     timestamptz NOT NULL,
    whole_since timestamptz NOT NULL
);

-- Pages that show an open hold: a session is one tab, gen grows whenever it connects, node is where it is connected. A page that was seen
-- to go has gone_at. The rows end with the hold.
CREATE TABLE hold_pages (
    event_id bigint NOT NULL,
    hold_id  uuid NOT NULL,
    session  text NOT NULL,
    gen      bigint NOT NULL,
    node     uuid NOT NULL,
    gone_at  timestamptz,
    PRIMARY KEY (event_id, hold_id, session),
    FOREIGN KEY (event_id, hold_id) REFERENCES holds
);
CREATE INDEX hold_pages_by_session ON hold_pages (session);
CREATE INDEX hold_pages_gone ON hold_pages (gone_at) WHERE gone_at IS NOT NULL;

ALTER TABLE holds DROP COLUMN page_session;

-- +goose Down
ALTER TABLE holds ADD COLUMN page_session text;
DROP TABLE hold_pages, nodes;
