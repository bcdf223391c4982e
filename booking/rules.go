package booking

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/seats"
)

// saleKind says what a write asks of its event: a live hold has kept the sale's window, everything else must be inside it.
type saleKind int

const (
	newSale saleKind = iota
	heldSale
)

// lockEvent is the one check of an event that hold, change, extend, check-out and confirm share, under a lock that a pause or a cancel
// waits for. Without the lock a sale could commit into an event that was cancelled a moment ago.
func lockEvent(ctx context.Context, tx pgx.Tx, caller Caller, id seats.EventID, kind saleKind) (db.EventLockForSaleRow, error) {
	event, err := lockVisible(ctx, tx, caller, id)
	if err == nil {
		err = onSale(event.Status, event.SaleStarted, event.SaleEnded, kind)
	}
	return event, err
}

// lockVisible is lockEvent for an event in any status that the caller may know.
func lockVisible(ctx context.Context, tx pgx.Tx, caller Caller, id seats.EventID) (db.EventLockForSaleRow, error) {
	event, err := queries.EventLockForSale(ctx, tx, db.EventLockForSaleParams{ID: int64(id), Caller: caller.ID, Organizer: caller.Kind == Organizer})
	switch {
	case db.NotFound(err), err == nil && !caller.sees(id, event.OrganizerID, event.Status):
		return event, ErrNotFound
	case err != nil:
		return event, fmt.Errorf("lock event: %w", err)
	}
	if event.Redrawn {
		reach, err := reachOf(ctx, tx, caller, id)
		if err != nil {
			return event, err
		}
		event.Channels = reach.Channels
	}
	return event, nil
}

// reach is what the caller may sell of an event, of which channels are those that it is given seats of without naming them.
func (c Caller) reach(channels []int32) seats.Reach {
	return seats.Reach{All: c.Kind == Organizer, Channels: channels}
}

// reachOf is reach for those who only look.
func reachOf(ctx context.Context, conn db.DBTX, caller Caller, event seats.EventID) (seats.Reach, error) {
	channels, err := queries.ChannelsAllowed(ctx, conn, db.ChannelsAllowedParams{
		ID: int64(event), Caller: caller.ID, Organizer: caller.Kind == Organizer,
	})
	if err != nil {
		return seats.Reach{}, fmt.Errorf("read channels: %w", err)
	}
	return caller.reach(channels), nil
}

func onSale(status string, started, ended bool, kind saleKind) error {
	switch {
	case status == StatusDraft:
		return ErrEventDraft
	case status == StatusPaused:
		return ErrEventPaused
	case status == StatusEnded:
		return ErrEventEnded
	case status == StatusCancelled:
		return ErrEventCancelled
	case kind == newSale && !started:
		return ErrSaleNotStarted
	case kind == newSale && ended:
		return ErrSaleEnded
	}
	return nil
}

// lockCap makes one caller's holds on one event take turns.
func lockCap(ctx context.Context, tx pgx.Tx, caller Caller, event seats.EventID) error {
	if err := queries.BuyerCapLock(ctx, tx, db.BuyerCapLockParams{EventID: int64(event), Buyer: caller.ID}); err != nil {
		return fmt.Errorf("lock cap: %w", err)
	}
	return nil
}

// checkCap counts under lockCap: what another request of the caller has committed is in the count.
func (s *Service) checkCap(ctx context.Context, tx pgx.Tx, caller Caller, event seats.EventID, more int) error {
	held, err := queries.HeldCount(ctx, tx, db.HeldCountParams{EventID: int64(event), Buyer: caller.ID})
	if err != nil {
		return fmt.Errorf("count held seats: %w", err)
	}
	limit := s.limits.HeldByBuyer
	if caller.Kind != Buyer {
		limit = s.limits.HeldByKey
	}
	if int(held)+more > limit {
		return ErrHoldLimit
	}
	return nil
}

// checkSelection looks at what can be said of a selection without the database.
func (s *Service) checkSelection(wants []seats.Want, places *AreaPlaces) error {
	switch {
	case (len(wants) > 0) == (places != nil):
		return invalid("/seats", "seats_or_ga", "either seats or places of an area are needed")
	case places != nil && (places.Quantity < 1 || places.Quantity > s.limits.Seats):
		return invalid("/ga/quantity", "bad_quantity", "between 1 and %d places can be had at once", s.limits.Seats)
	}
	return s.checkWants("/seats", wants)
}

func (s *Service) checkWants(pointer string, wants []seats.Want) error {
	if len(wants) > s.limits.Seats {
		return invalid(pointer, "too_many_seats", "at most %d seats can be had at once", s.limits.Seats)
	}
	return checkEach(pointer, wants)
}

func checkEach(pointer string, wants []seats.Want) error {
	seen := map[seats.ID]bool{}
	for i, w := range wants {
		at := fmt.Sprintf("%s/%d", pointer, i)
		switch {
		case w.ID < 1:
			return invalid(at, "bad_seat", "a seat's id is a positive number")
		case seen[w.ID]:
			return invalid(at, "duplicate_seat", "seat %d stands earlier in the list", w.ID)
		}
		seen[w.ID] = true
	}
	return nil
}

// selection is named seats, which may leave one alone as a last resort, or places of an area.
type selection struct {
	wants      []seats.Want
	places     *AreaPlaces
	lastResort bool
}

// choose returns the seats to write: the named ones, their rows locked in id order when there are several or they are judged, or free
// places of the area. alone says that they leave a seat alone as a last resort.
func (s *Service) choose(ctx context.Context, tx pgx.Tx, caller Caller, event db.EventLockForSaleRow, of selection, patience seats.Patience) (wants []seats.Want, alone bool, err error) {
	id := seats.EventID(event.ID)
	switch {
	case of.places != nil:
		wants, err = s.pick(ctx, tx, id, event.Channels, *of.places, patience)
		return wants, false, err
	case judges(event, caller):
		alone, err = s.judge(ctx, tx, event, choiceOf{ids: seats.IDs(of.wants), lastResort: of.lastResort})
		return of.wants, alone, err
	case len(of.wants) == 1:
		return of.wants, false, nil
	}
	n, err := seats.Lock(ctx, tx, id, seats.IDs(of.wants))
	if err != nil {
		return nil, false, fmt.Errorf("lock seats: %w", err)
	}
	if n < len(of.wants) {
		return nil, false, errLost
	}
	return of.wants, false, nil
}

// checkOrder holds one order to the event's own limit; the server's is looked at before.
func checkOrder(event db.EventLockForSaleRow, n int) error {
	if event.OrderLimit != nil && n > int(*event.OrderLimit) {
		return invalid("", "order_limit", "the event sells at most %d seats at once", *event.OrderLimit)
	}
	return nil
}

// choosing runs a transaction that may pick places of an area: in haste first, and if too few were left, once more with patience. Only
// the patient one may say that the area is sold out.
func (s *Service) choosing(ctx context.Context, fn func(tx pgx.Tx, patience seats.Patience) error) error {
	err := s.inTx(ctx, func(tx pgx.Tx) error { return fn(tx, seats.Hasty) })
	if errors.Is(err, seats.ErrTooFew) {
		err = s.inTx(ctx, func(tx pgx.Tx) error { return fn(tx, seats.Patient) })
	}
	if errors.Is(err, seats.ErrTooFew) {
		return ErrSoldOut
	}
	return err
}

// pick chooses free places of the area that are in one of the channels, looking first where this node found some last.
func (s *Service) pick(ctx context.Context, tx pgx.Tx, event seats.EventID, channels []int32, places AreaPlaces, patience seats.Patience) ([]seats.Want, error) {
	cursor := s.cursor(event, places.Area)
	ids, err := seats.PickPlaces(ctx, tx, event, places.Area, channels, cursor.ahead(places.Quantity), places.Quantity, patience)
	if errors.Is(err, seats.ErrTooFew) && patience == seats.Patient {
		if _, err := queries.AreaGet(ctx, tx, db.AreaGetParams{EventID: int64(event), ID: places.Area}); db.NotFound(err) {
			return nil, ErrNotFound
		}
	}
	if err != nil {
		cursor.reset()
		return nil, fmt.Errorf("pick places: %w", err)
	}
	s.found(event, places.Area, slices.Max(ids))
	wants := seats.Any(ids...)
	for i := range wants {
		wants[i].Type = places.Type
	}
	return wants, nil
}

// maxAlternatives is how many free seats a refusal names.
const maxAlternatives = 6

// refusal turns the failure of a write into what its caller is told. For lost seats it reads, after the roll-back, who has them; if
// they have come free in between, the caller may simply try again.
func (s *Service) refusal(ctx context.Context, err error, caller Caller, event seats.EventID, wants []seats.Want) error {
	switch {
	case err == nil:
		return nil
	case db.LockTimedOut(err) && len(wants) > 0:
		return Busy(seats.IDs(wants))
	case db.Violates(err, db.ConstraintLiveTicket), db.Violates(err, db.ConstraintLedger):
		if s.Guarded != nil {
			s.Guarded()
		}
	case !errors.Is(err, errLost):
		return err
	}
	if len(wants) == 0 {
		return ErrBusy
	}
	reach, err := reachOf(ctx, s.pool, caller, event)
	if err != nil {
		return answer(err)
	}
	rows, err := seats.ByID(ctx, s.pool, event, reach, seats.IDs(wants))
	if err != nil {
		return answer(fmt.Errorf("read lost seats: %w", err))
	}
	refusal := &SeatsError{Seats: losers(caller, event, wants, rows)}
	if len(refusal.Seats) == 0 {
		if err := s.soldAs(ctx, event, wants, func(i int) string { return fmt.Sprintf("/seats/%d", i) }); err != nil {
			return answer(err)
		}
		return Busy(seats.IDs(wants)) // free again, or free all along for a moment too late
	}
	refusal.Code = codeOf(refusal.Seats)
	if refusal.Code == CodeSeatTaken || refusal.Code == CodeSeatYours {
		var categories []int32
		for _, r := range rows {
			categories = append(categories, r.CategoryID)
		}
		lost := refusal.Seats[0]
		refusal.Alternatives, err = seats.Near(ctx, s.pool, event, reach, lost.ID, categories, seats.IDs(wants), maxAlternatives)
		if err != nil {
			return answer(fmt.Errorf("look for other seats: %w", err))
		}
	}
	return refusal
}

// losers says of each wanted seat that its row does not give to the caller why that is so.
func losers(caller Caller, event seats.EventID, wants []seats.Want, rows []seats.Row) []LostSeat {
	byID := map[seats.ID]seats.Row{}
	for _, r := range rows {
		byID[r.ID] = r
	}
	var lost []LostSeat
	for _, w := range wants {
		r, known := byID[w.ID]
		l := LostSeat{ID: w.ID, Place: r.Place, Fence: r.Fence}
		switch {
		case !known:
			l.Reason = ReasonUnknown
		case r.State == seats.Booked && *r.Buyer == caller.ID:
			l.Reason = ReasonYours
		case r.State == seats.Booked:
			l.Reason = ReasonBooked
		case r.State == seats.Blocked:
			l.Reason = ReasonBlocked
		case r.State == seats.Held && slices.Contains(r.Holder, caller.ID):
			l.Reason, l.HeldUntil, l.Hold = ReasonYours, r.HeldUntil, &HoldID{event, *r.Hold}
		case r.State == seats.Held:
			l.Reason, l.HeldUntil = ReasonHeld, r.HeldUntil
		case w.Fence >= 0 && w.Fence != r.Fence:
			l.Reason = ReasonStale
		case r.Area != nil:
			l.Reason = ReasonUnknown // a place of an area is nobody's seat to name
		default:
			continue
		}
		lost = append(lost, l)
	}
	return lost
}

func codeOf(lost []LostSeat) string {
	has := func(reason string) bool {
		return slices.ContainsFunc(lost, func(l LostSeat) bool { return l.Reason == reason })
	}
	switch {
	case has(ReasonUnknown):
		return CodeSeatUnknown
	case has(ReasonBooked), has(ReasonHeld), has(ReasonBlocked):
		return CodeSeatTaken
	case has(ReasonYours):
		return CodeSeatYours
	}
	return CodeStaleFence
}
