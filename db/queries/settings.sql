-- name: ServerSettings :one
SELECT current_setting('synchronous_commit')::text AS synchronous_commit, current_setting('fsync')::text AS fsync,
       current_setting('server_version_num')::integer AS version, pg_is_in_recovery()::boolean AS standby;

-- name: LongStatements :exec
-- For the transaction of an administrator that writes a whole house.
SELECT set_config('statement_timeout', '60000', true);


-- name: SeatsAnalyze :exec
-- After a house was loaded: the planner would not know of its seats for a minute. It does not wait for a vacuum, nor for another new house.
ANALYZE (SKIP_LOCKED) seats, spots, categories, prices, ticket_types;

-- name: CustomPlans :exec
-- For the transaction of a search, whose plan depends on which of its filters are set.
SELECT set_config('plan_cache_mode', 'force_custom_plan', true);
