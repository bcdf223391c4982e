// Package db is the room for everything that only Postgres knows: the pool and its limits, transactions, SQLSTATEs and constraint
// names, and the queries of queries/*.sql as sqlc turned them into Go (*.gen.go; change the .sql, then run make generate).
// It knows no rule of the business.
package db
