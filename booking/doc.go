// Package booking is the room of the use cases: hold, change, extend, check out, book, cancel, block, and the sweep of what has run out.
// One method of Service is one transaction, and only here are transactions of the sale opened. Locks of rows are taken in one order everywhere:
// the buyer's cap row, the event (its turn, then its row FOR SHARE), the hold, the seats by id, the rest, the idempotency row.
//
// Postgres decides everything. Nothing here knows Redis, HTTP or mail; what has to leave after a commit is a row of the outbox.
package booking
