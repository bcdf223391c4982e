-- +goose Up

-- Whose pages may read public things and watch seat maps for the key's organizer, by the key's id alone. See access.Origin for what is one.
ALTER TABLE api_keys ADD COLUMN origins text[] NOT NULL DEFAULT '{}' CHECK (cardinality(origins) <= 10);

-- +goose Down
ALTER TABLE api_keys DROP COLUMN origins;
