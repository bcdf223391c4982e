package booking

import (
	"context"
	"iter"
	"time"

	"seatfence/db"
)

// overdueAfter is how long a hold may be over before the sweeper is said to have missed it.
const overdueAfter = 5 * time.Second

// Invariant counts the rows that break a promise of the sale; 0 is sound.
type Invariant func(context.Context, db.DBTX) (int64, error)

// Invariants returns the promises of the sale by name, as queries that may run over a live database.
func Invariants() iter.Seq2[string, Invariant] {
	list := []struct {
		name  string
		check Invariant
	}{
		{"no seat is sold twice", queries.VerifySoldTwice},
		{"every sold seat has its ticket and booking", queries.VerifySeatWithoutTicket},
		{"every valid ticket has its seat", queries.VerifyTicketWithoutSeat},
		{"every booking is whole", queries.VerifyPartialBooking},
		{"every booking is in the outbox, and nothing else", func(ctx context.Context, conn db.DBTX) (int64, error) {
			return queries.VerifyOutbox(ctx, conn, outboxKept-time.Hour)
		}},
		{"every change of a seat is in the ledger", queries.VerifyLedger},
		{"every held seat belongs to its hold", queries.VerifyHeldSeats},
		{"no hold outlives its time", func(ctx context.Context, conn db.DBTX) (int64, error) {
			return queries.VerifyOverdueHolds(ctx, conn, overdueAfter)
		}},
		{"a cancelled event has no owners", queries.VerifyUnwoundEvents},
		{"no hold that has ended is still shown", queries.VerifyEndedHoldPages},
	}
	return func(yield func(string, Invariant) bool) {
		for _, i := range list {
			if !yield(i.name, i.check) {
				return
			}
		}
	}
}
