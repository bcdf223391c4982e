package main

import (
	"fmt"
	"strings"
)

// mutant is a fault and the tests that must notice it.
type mutant struct {
	name  string
	pkg   string
	tests []string
	edits []edit
}

// edit replaces old, which stands exactly once in the file between from and to; with both empty that is the whole file.
type edit struct{ file, from, to, old, new string }

// code is an edit of a file by hand.
func code(file, old, new string) edit { return edit{file: file, old: old, new: new} }

// query is an edit of one statement as it was generated from db/queries/noun.sql.
func query(noun, name, old, new string) edit {
	return edit{"db/" + noun + ".sql.gen.go", "`-- name: " + name + " ", "`\n", old, new}
}

func (e edit) apply(text string) (string, error) {
	head, part, ok := cutAfter(text, e.from)
	part, tail := part, ""
	if e.to != "" && ok {
		end := strings.Index(part, e.to)
		if end < 0 {
			return "", fmt.Errorf("%s: no %q after %q", e.file, e.to, e.from)
		}
		part, tail = part[:end], part[end:]
	}
	if n := strings.Count(part, e.old); !ok || n != 1 {
		return "", fmt.Errorf("%s: %q stands %d times after %q, want once", e.file, e.old, n, e.from)
	}
	return head + strings.Replace(part, e.old, e.new, 1) + tail, nil
}

func cutAfter(text, mark string) (head, rest string, ok bool) {
	head, rest, ok = strings.Cut(text, mark)
	return head + mark, rest, ok
}

const (
	booking = "./booking"
	expiry  = "expires_at > statement_timestamp()"
)

// In every mutant the tests named are those whose subject it is; that others would fail too is of no interest.
var mutants = []mutant{
	{
		"the sale does not ask for an owner", booking,
		[]string{"TestLateSaleOfOneSeatFindsItTaken"},
		[]edit{{"db/bookings.sql.gen.go", "), sold AS (", "RETURNING", "s.buyer IS NULL AND ", ""}},
	},
	{
		"the hold does not ask for an owner", booking,
		[]string{"TestLateHoldOfOneSeatFindsItTaken"},
		[]edit{query("seats", "SeatHold", "s.buyer IS NULL AND ", "")},
	},
	{
		"the sale does not ask for another's hold", booking,
		[]string{"TestSeatThatAnotherHoldsIsNotSoldDirectly"},
		[]edit{query("bookings", "Sell", "THEN s.hold_id IS NULL OR s.held_until <= statement_timestamp()", "THEN true")},
	},
	{
		"the hold does not ask for another's hold", booking,
		[]string{"TestHistoryOfACrowdIsLinearizable"},
		[]edit{query("seats", "SeatHold", "(s.hold_id IS NULL OR s.held_until <= statement_timestamp())", "true")},
	},
	{
		"a sale of one seat ignores the number of rows", booking,
		[]string{"TestLateSaleOfOneSeatFindsItTaken"},
		[]edit{code("booking/book.go", "if len(sold.Seats) == 1 {", "if true {")},
	},
	{
		"a sale of several seats ignores the number of rows", booking,
		[]string{"TestTakenSeatsAreNamedWithFreeOnesNearby"},
		[]edit{code("booking/book.go", "len(sold.Seats) < len(sale.Wants)", "false")},
	},
	{
		"a hold ignores the number of rows", booking,
		[]string{"TestLateHoldOfOneSeatFindsItTaken"},
		[]edit{code("booking/holds.go", "len(taken) < len(wants)", "false")},
	},
	{
		"the mail is left before the commit", booking,
		[]string{"TestSaleStoppedBeforeItsCommitShortly"},
		[]edit{
			query("bookings", "Sell", " FROM sold LIMIT 1", " FROM sold WHERE false"),
			code("booking/book.go", "\t\tsold, err = sell(ctx, tx, *sale)\n", `
			sold, err = sell(ctx, tx, *sale)
			_ = queries.OutboxAdd(ctx, s.pool, db.OutboxAddParams{EventID: int64(req.Event), BookingID: sale.Booking, Kind: MailConfirmed})
`),
		},
	},
	{
		"a refused sale leaves a mail", booking,
		[]string{"TestLateSaleOfOneSeatFindsItTaken"},
		[]edit{query("bookings", "Sell", " FROM sold LIMIT 1", "")},
	},
	{
		"the buyer is part of the seat lock's key", "./lockmgr",
		[]string{"TestOneOfManyCallersGetsTheSeat"},
		[]edit{code("lockmgr/seats.go", "\tstart := time.Now()\n\tctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acquireBudget)", `
	for i := range lease.keys {
		lease.keys[i] += caller
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acquireBudget)`)},
	},
	{
		"a seat lock is released with a plain DEL", "./lockmgr",
		[]string{"TestLateReleaseLeavesTheNextHoldersLock"},
		[]edit{code("lockmgr/seats_release.lua", "if value and value:sub(1, #ARGV[1]) == ARGV[1] then", "if value then")},
	},
	{
		"a seat lock without an end turns buyers away", "./lockmgr",
		[]string{"TestLocksThatDoNotEndInTimeAreIgnored"},
		[]edit{code("lockmgr/seats_acquire.lua", "taken and left >= 0 and left <= ttl", "taken and left <= ttl")},
	},
	{
		"a seat lock that was taken skips the condition", booking,
		[]string{"TestSeatLockThatSaidYesDecidesNothing"},
		[]edit{
			code("lockmgr/seats.go", "// Verdict is what Redis advises", "var SaidYes bool\n\n// Verdict is what Redis advises"),
			code("lockmgr/seats.go", "lease.Verdict, lease.Busy = verdict, busy", "lease.Verdict, lease.Busy, SaidYes = verdict, busy, SaidYes || verdict == Acquired"),
			code("db/bookings.sql.gen.go", "import (\n", "import (\n\"seatfence/lockmgr\"\n\"strings\"\n"),
			code("db/bookings.sql.gen.go", "\trows, err := db.Query(ctx, sell,", `
	sell := sell
	if lockmgr.SaidYes {
		sell = strings.ReplaceAll(sell, "s.buyer IS NULL AND ", "")
	}
	rows, err := db.Query(ctx, sell,`),
		},
	},
	{
		"the idempotency key is read first and written last", booking,
		[]string{"TestSameKeyAtOnceTakesPlacesOnce"},
		[]edit{
			code("booking/service.go", "if result, err = run(ctx); err == nil {", `
		if stored, known, err := s.lookup(ctx, event, caller, key); known {
			result, err = recall(ctx, stored)
			return result, err == nil, err
		}
		if result, err = run(ctx); err == nil {`),
			{"db/bookings.sql.gen.go", "), answered AS (", "SELECT o.id", "FROM sold HAVING count(*) > 0", "FROM sold HAVING count(*) > 0 ON CONFLICT DO NOTHING"},
			query("idempotency", "KeyInsert", "statement_timestamp())", "statement_timestamp()) ON CONFLICT DO NOTHING"),
		},
	},
	{
		"a lost answer is refused without a look at the key", booking,
		[]string{"TestLostAnswerIsLookedUpBeforeAnythingIsRefused"},
		[]edit{code("booking/service.go", "\t\tcase known:\n\t\t\tresult, err = recall", "\t\tcase known && again(err):\n\t\t\tresult, err = recall")},
	},
	{
		"several seats are locked in the order of the request", booking,
		[]string{"TestSeveralSeatsAreTakenInTheOrderOfTheirIDs"},
		[]edit{query("seats", "SeatLock", "ORDER BY id", "ORDER BY array_position($2::integer[], id)")},
	},
	{
		"several seats are not locked before they are written", booking,
		[]string{"TestSeveralSeatsAreTakenInTheOrderOfTheirIDs"},
		[]edit{code("booking/rules.go", "\tcase len(of.wants) == 1:", "\tcase true:")},
	},
	{
		"a hold's end is compared with now()", booking,
		[]string{"TestHoldThatRunsOutInsideItsConfirmationIsNotSold"},
		[]edit{query("holds", "HoldBook", expiry, "expires_at > now()")},
	},
	{
		"a hold's end is not looked at when it is sold", booking,
		[]string{"TestHoldThatRunsOutInsideItsConfirmationIsNotSold"},
		[]edit{query("holds", "HoldBook", " AND "+expiry, "")},
	},
	{
		"a hold that has run out still counts as open", booking,
		[]string{"TestExpiredHoldIsTakenOverInPlaceWithoutASweeper"},
		[]edit{code("booking/holds.go", "row.Status == HoldExpired, row.Status == HoldOpen && row.Over:\n\t\treturn row, nil", "row.Status == HoldExpired:\n\t\treturn row, nil")},
	},
	{
		"places are picked in a LIMIT below an UPDATE", booking,
		[]string{"TestPlacesAreNoMoreThanAskedFor"},
		[]edit{
			query("seats", "SeatPickUnits", "SELECT s.id FROM seats s\n", `UPDATE seats SET fence = fence
WHERE event_id = $1 AND buyer IS NULL AND block_id IS NULL AND hold_id IS NULL AND id IN (SELECT s.id FROM seats s
`),
			query("seats", "SeatPickUnits", "SKIP LOCKED", "SKIP LOCKED) RETURNING id"),
		},
	},
	{
		"places are picked without their rows", booking,
		[]string{"TestPlacesOfAnAreaSellOutExactly"},
		[]edit{query("seats", "SeatPickUnits", " FOR UPDATE SKIP LOCKED", ""), query("bookings", "Sell", " FOR UPDATE SKIP LOCKED", "")},
	},
	{
		"a sale of one seat does not lock the event", booking,
		[]string{"TestPauseWaitsForTheWriteUnderWay", "TestWriteWaitsForThePauseUnderWay"},
		[]edit{query("bookings", "Sell", "    FOR SHARE\n", "")},
	},
	{
		"a hold does not lock the event", booking,
		[]string{"TestPauseWaitsForTheWriteUnderWay", "TestWriteWaitsForThePauseUnderWay"},
		[]edit{query("events", "EventLockForSale", " FOR SHARE", "")},
	},
	{
		"no index keeps a seat from a second live ticket", booking,
		[]string{"TestSeatWhoseOwnerWasLostIsNotSoldTwice"},
		[]edit{code("migrations/00001_sale.sql", "CREATE UNIQUE INDEX tickets_live_seat", "CREATE INDEX tickets_live_seat")},
	},
	{
		"the sale ignores the fence", booking,
		[]string{"TestOlderFenceIsRefused"},
		[]edit{query("bookings", "Sell", "(w.fence < 0 OR s.fence = w.fence)", "true")},
	},
	{
		"the hold ignores the fence", booking,
		[]string{"TestOlderFenceIsRefused"},
		[]edit{query("seats", "SeatHold", "(w.fence < 0 OR s.fence = w.fence)", "true")},
	},
	{
		"a release frees what others hold by now", booking,
		[]string{"TestExpiredHoldIsTakenOverInPlaceWithoutASweeper"},
		[]edit{{"db/seats.sql.gen.go", "`-- name: SeatRelease ", "RETURNING", " AND s.fence = w.fence AND s.hold_id = $4", ""}},
	},
	{
		"a booking is cancelled twice", booking,
		[]string{"TestCancelFreesTheSeatAtOnce"},
		[]edit{query("bookings", "BookingCancel", " AND status = 'confirmed'", "")},
	},
	{
		"a buyer's holds are counted without a lock", booking,
		[]string{"TestCapCountsAHoldThatIsNotCommittedYet"},
		[]edit{code("booking/rules.go", "if err := queries.BuyerCapLock(ctx, tx, db.BuyerCapLockParams{EventID: int64(event), Buyer: caller.ID}); err != nil {", "if err := error(nil); err != nil {")},
	},
	{
		"the commit's error is swallowed", booking,
		[]string{"TestSaleStoppedBeforeItsCommitForLongLosesItsTransaction"},
		[]edit{code("db/tx.go", `return fmt.Errorf("commit: %w", err)`, "return nil")},
	},
	{
		"the commit ends with its caller", "./db",
		[]string{"TestCommitOutlivesItsCaller"},
		[]edit{code("db/tx.go", "commit, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)", "commit, cancel := context.WithTimeout(ctx, commitTimeout)")},
	},
	{
		"the sale ignores channels", booking,
		[]string{"TestKeySellsItsChannelsAndNothingElse"},
		[]edit{{"db/bookings.sql.gen.go", "), sold AS (", "RETURNING", "OR coalesce(s.channel_id, 0) = ANY(ARRAY(SELECT channel_id FROM allowed))", "OR true"}},
	},
	{
		"the hold ignores channels", booking,
		[]string{"TestKeySellsItsChannelsAndNothingElse"},
		[]edit{query("seats", "SeatHold", "OR coalesce(s.channel_id, 0) = ANY($9::integer[])", "OR coalesce(s.channel_id, 0) <> ALL($9::integer[]) OR true")},
	},
	{
		"a place is picked whatever its channel", booking,
		[]string{"TestKeySellsItsChannelsAndNothingElse"},
		[]edit{
			query("seats", "SeatPickUnits", "coalesce(s.channel_id, 0) = ANY($4::integer[])", "(coalesce(s.channel_id, 0) = ANY($4::integer[]) OR true)"),
			query("seats", "SeatHold", "OR coalesce(s.channel_id, 0) = ANY($9::integer[])", "OR $8 OR s.area_id IS NOT NULL OR coalesce(s.channel_id, 0) = ANY($9::integer[])"),
		},
	},
	{
		"the orphan rule does not lock the neighbours", booking,
		[]string{"TestChoiceWaitsForTheOneBesideIt"},
		[]edit{query("seats", "SeatLockStates", "FOR UPDATE", "")},
	},
	{
		"a sale of one seat is not judged", booking,
		[]string{"TestChoiceThatLeavesASeatAloneIsRefusedWithABetterOne"},
		[]edit{query("bookings", "Sell", " OR NOT (e.orphan_rule OR e.whole_tables)", " OR true")},
	},
	{
		"a hold is sold at what it costs now", booking,
		[]string{"TestTierThatEndsBetweenHoldAndConfirm"},
		[]edit{code("booking/book.go", "sale.Prices = append(sale.Prices, seat.Price)", "sale.Prices = append(sale.Prices, -1)")},
	},
	{
		"a tier that has not begun counts", booking,
		[]string{"TestTierThatEndsBetweenHoldAndConfirm"},
		[]edit{code("migrations/00004_halls.sql", "WHERE p.starts_at <= statement_timestamp()\n", "")},
	},
	{
		"a seat is held as a type that it is not sold as", booking,
		[]string{"TestTypeIsSoldFromItsTimeOn"},
		[]edit{
			query("seats", "SeatHold", "\n    JOIN cost p", "\n    LEFT JOIN cost p"),
			query("seats", "SeatHold", "p.type, p.amount AS price", "coalesce(p.type, a.type) AS type, coalesce(p.amount, 0) AS price"),
		},
	},
	{
		"a seat is sold for nothing as a type that it is not sold as", booking,
		[]string{"TestTypeIsSoldFromItsTimeOn"},
		[]edit{query("bookings", "Sell", "THEN p.amount ELSE", "THEN coalesce(p.amount, 0) ELSE")},
	},
	{
		"a new plan takes seats off without a look at who has them", booking,
		[]string{"TestNewPlanAndWhoeverHasASeat"},
		[]edit{code("booking/redraw.go", "\tif len(refusal.Seats) > 0 {", "\tif false {")},
	},
	{
		"a new plan does not lock the event", booking,
		[]string{"TestSaleUnderWayIsFinishedBeforeANewPlan"},
		[]edit{
			query("events", "EventTurn", "-($1::bigint)", "$1::bigint"),
			query("events", "EventLockForChange", " FOR NO KEY UPDATE", ""),
			code("booking/redraw.go", "if _, err := seats.Lock(ctx, tx, id, touched); err != nil {", "if err := error(nil); err != nil {"),
		},
	},
	{
		"the best seats are gone once somebody is about to take them", booking,
		[]string{"TestSeatsThatOthersAreAboutToTakeAreNotGone"},
		[]edit{code("booking/best.go", "\t\tcase !taken:", "\t\tcase !taken || taken:")},
	},
	{
		"a sale that waited for an exchange of keys has the channels of before", booking,
		[]string{"TestSaleThatWaitedForAnExchangeOfKeysDoesNotGetItsSeat"},
		[]edit{code("booking/rules.go", "if event.Redrawn {", "if event.Redrawn && false {")},
	},
	{
		"a new event waits for whoever vacuums its tables", booking,
		[]string{"TestEventIsMadeWhileItsTablesAreVacuumed"},
		[]edit{query("settings", "SeatsAnalyze", "(SKIP_LOCKED) ", "")},
	},
	{
		"the sessions of a user who was removed live", "./internal/staff",
		[]string{"TestARemovedUserIsOutOnEveryNodeInTime"},
		[]edit{ // two guards, each enough
			code("internal/staff/user.go", "queries.UserRemove, queries.SessionsEnd}", "queries.UserRemove}"),
			query("staff", "SessionGet", "JOIN people p ON p.id = s.user_id", `JOIN (
    SELECT u.id, u.organizer_id, ''::text AS organizer, u.email, u.name, u.role, u.every_event, u.password_hash, u.created_at, '{}'::bigint[] AS events
    FROM users u) p ON p.id = s.user_id`),
		},
	},
	{
		"the node that removed a user still knows the session", "./internal/staff",
		[]string{"TestARemovedUserIsOutOnEveryNodeInTime"},
		[]edit{code("internal/staff/session.go", "\t\tif e.session.User.ID == user {", "\t\tif e.session.User.ID == user && false {")},
	},
	{
		"a link for a password works twice", "./internal/staff",
		[]string{"TestALinkWorksOnceAndEndsTheOtherSessions"},
		[]edit{
			code("internal/staff/link.go", "queries.TokenTake(ctx, tx, hash[:])", "queries.TokenGet(ctx, tx, hash[:])"),
			{"internal/staff/link.go", "// SetPassword takes", "return record", "queries.TokensEnd(ctx, tx, row.UserID)", "error(nil)"},
		},
	},
	{
		"a mail is queued as often as its row is handed on", "./internal/notify",
		[]string{"TestARowHandedOnTwiceIsMailedOnce"},
		[]edit{code("internal/notify/worker.go", "UniqueOpts: river.UniqueOpts{ByArgs: true}", "")},
	},
}
