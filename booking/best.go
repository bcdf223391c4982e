package booking

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/seats"
)

// BestWish asks for the best free seats: a number of them, or of each ticket type. Category and Section, if not "", limit the choice.
// Exactly Accessible of the seats are accessible ones. Together would rather have nothing than seats apart.
type BestWish struct {
	Quantity   int
	Types      []TypeCount
	Category   string
	Section    string
	Accessible int
	Together   bool

	like []seats.ID // as good as these and near them, instead of all the above
}

// TypeCount is a number of seats of a ticket type.
type TypeCount struct {
	Type     string
	Quantity int
}

// size is how many seats the wish asks for.
func (w BestWish) size() (n int) {
	for _, t := range w.Types {
		n += t.Quantity
	}
	return n + w.Quantity
}

// wants gives chosen seats the types of the wish, in its order.
func (w BestWish) wants(ids []seats.ID) []seats.Want {
	wants := seats.Any(ids...)
	next := 0
	for _, t := range w.Types {
		for range t.Quantity {
			wants[next].Type = t.Type
			next++
		}
	}
	return wants
}

// insteadKey begins the key of a hold that was made instead of the one asked for. No caller's key has a space.
const insteadKey = "instead of "

// Instead looks for seats that are as good as the named ones of a request that was refused, holds them for the caller, and adds the hold
// to the refusal. The same request under the same key gets the same hold again. A refusal that other seats do not help stays as it is,
// and so does one for which there are none.
func (s *Service) Instead(ctx context.Context, caller Caller, key Idempotency, req HoldRequest, refusal error) error {
	lost, ok := errors.AsType[*SeatsError](refusal)
	if !ok || !slices.Contains([]string{CodeSeatTaken, CodeSeatBusy, CodeStaleFence, CodeSeatAlone}, lost.Code) {
		return refusal
	}
	wish := BestWish{like: seats.IDs(req.Seats)}
	for _, w := range req.Seats {
		wish.Types = append(wish.Types, TypeCount{w.Type, 1})
	}
	key.Key = insteadKey + key.Key
	hold, _, err := s.Hold(ctx, caller, key, HoldRequest{Event: req.Event, Best: &wish, Page: req.Page})
	if err == nil {
		lost.Instead = &hold
	}
	return refusal
}

// HeldInstead is the refusal of a request that has been refused before with an alternative held: the seats that it named may have come
// free since, and its caller would hold both. It is nil for any other request.
func (s *Service) HeldInstead(ctx context.Context, caller Caller, key Idempotency, req HoldRequest) error {
	key.Key = insteadKey + key.Key
	stored, known, err := s.lookup(ctx, req.Event, caller, key)
	if err != nil || !known {
		return err
	}
	hold, err := recalled[Hold](ctx, stored)
	if err != nil {
		return err
	}
	house, err := s.SeatsByID(ctx, caller, req.Event, seats.IDs(req.Seats))
	if err != nil {
		return err
	}
	refusal := &SeatsError{Code: CodeSeatTaken, Instead: &hold}
	for _, seat := range house.Seats {
		refusal.Seats = append(refusal.Seats, LostSeat{ID: seat.ID, Place: seat.Place, Reason: ReasonHeld, Fence: seat.Fence})
	}
	return refusal
}

// pointer is where the type of the wish's nth seat stands in the request.
func (w BestWish) pointer(n int) string {
	for i, t := range w.Types {
		if n -= t.Quantity; n < 0 {
			return fmt.Sprintf("/best_available/types/%d", i)
		}
	}
	return "/best_available"
}

func (s *Service) checkBest(w BestWish) error {
	const at = "/best_available"
	switch n := w.size(); {
	case w.Quantity != 0 && len(w.Types) > 0:
		return invalid(at, "quantity_or_types", "either a quantity or ticket types are needed")
	case n < 1 || n > s.limits.Seats:
		return invalid(at+"/quantity", "bad_quantity", "between 1 and %d seats can be had at once", s.limits.Seats)
	case w.Accessible < 0 || w.Accessible > min(n, seats.MaxAccessible):
		return invalid(at+"/accessible", "bad_quantity", "no more accessible seats than seats, and at most %d, can be had", seats.MaxAccessible)
	}
	for i, t := range w.Types {
		switch here := fmt.Sprintf("%s/types/%d", at, i); {
		case t.Quantity < 1:
			return invalid(here+"/quantity", "bad_quantity", "at least one seat of each type is needed")
		case w.like == nil && slices.ContainsFunc(w.Types[:i], func(o TypeCount) bool { return o.Type == t.Type }):
			return invalid(here+"/type", "duplicate_type", "the ticket type stands earlier in the list")
		}
	}
	return nil
}

// prices are those of the event if the wish names a ticket type, and otherwise none.
func (w BestWish) prices(ctx context.Context, conn db.DBTX, event seats.EventID) (PriceList, error) {
	if !slices.ContainsFunc(w.Types, func(t TypeCount) bool { return t.Type != "" }) {
		return PriceList{}, nil
	}
	return readPrices(ctx, conn, event)
}

// among is which of the categories that have numbered seats are sold as all ticket types of the wish; nil for a wish that names none.
func (w BestWish) among(prices PriceList, seated map[string]int32) ([]int32, error) {
	if prices.Types == nil {
		return nil, nil
	}
	left := maps.Clone(seated)
	maps.DeleteFunc(left, func(name string, _ int32) bool { return w.Category != "" && name != w.Category })
	for i, t := range w.Types {
		at := fmt.Sprintf("/best_available/types/%d/type", i)
		if t.Type != "" && !slices.Contains(prices.Types, t.Type) {
			return nil, invalid(at, "unknown_type", "the event has no ticket type of this name")
		}
		some := len(left) > 0
		maps.DeleteFunc(left, func(name string, _ int32) bool {
			_, sold := prices.now(name, t.Type)
			return !sold
		})
		if some && len(left) == 0 {
			return nil, invalid(at, "type_not_sold", "no category that may be chosen is sold as these ticket types now")
		}
	}
	return slices.AppendSeq([]int32{}, maps.Values(left)), nil
}

// wish is what the hall is asked for, or why it knows of no such thing.
func (h *hall) wish(w BestWish, channels []int32, prices PriceList) (seats.Wish, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	category, known := h.names[w.Category]
	switch {
	case w.Category != "" && !known:
		return seats.Wish{}, invalid("/best_available/category", "unknown_category", "the event has no category of this name")
	case w.Section != "" && !h.sections[w.Section]:
		return seats.Wish{}, invalid("/best_available/section", "unknown_section", "the event has no section of this name with numbered seats")
	}
	among, err := w.among(prices, h.seated)
	if err != nil {
		return seats.Wish{}, err
	}
	wish := seats.Wish{Quantity: w.size(), Accessible: w.Accessible, Category: category, Section: w.Section, Together: w.Together}
	if w.like != nil {
		wish = likeness(h.drawing, w.like)
	}
	wish.Channels, wish.Among = channels, among
	return wish, nil
}

const (
	bestTries    = 4                       // that lose to others before the queue is used
	bestPatience = 1500 * time.Millisecond // for the requests of this node that have claimed what is left
	queueTurns   = 3
	queuedTries  = 8 // in one turn
)

// holdBest chooses in memory and lets the write decide. Nobody is refused while a fitting choice is left: "none" is said only of what
// was committed and read after the request came, and whoever keeps losing to other nodes goes into a queue.
func (s *Service) holdBest(ctx context.Context, caller Caller, key Idempotency, req HoldRequest) (Hold, error) {
	patience := time.NewTimer(bestPatience)
	defer patience.Stop()
	for tries := 0; tries < bestTries; {
		settled := s.halls.of(req.Event).nextSettled()
		h, v, wish, err := s.look(ctx, caller, req)
		if err != nil {
			return Hold{}, err
		}
		choice, ok, taken := h.claim(v, wish)
		switch {
		case ok:
			hold, err := s.holdChosen(ctx, caller, key, req, h, choice)
			if !errors.Is(err, errLost) && !db.LockTimedOut(err) {
				return hold, err
			}
			if err := s.soldAs(ctx, req.Event, req.Best.wants(choice.Seats), req.Best.pointer); err != nil {
				return Hold{}, err
			}
			tries++
		case !taken:
			return Hold{}, ErrNoBlock
		default:
			select {
			case <-settled:
			case <-patience.C:
				tries = bestTries
			case <-ctx.Done():
				return Hold{}, ctx.Err()
			}
		}
	}
	var hold Hold
	err := ErrBusy
	for try := 0; try < queueTurns && (errors.Is(err, ErrBusy) || db.LockTimedOut(err)); try++ {
		h, _, readErr := s.halls.read(ctx, s.pool, req.Event) // the event may have been drawn anew
		if readErr != nil {
			return Hold{}, readErr
		}
		hold, err = s.holdQueued(ctx, caller, key, req, h)
	}
	return hold, err
}

// look reads what is free for the wish, and refuses what no choice could help: an event that the caller may not know or that does not sell.
func (s *Service) look(ctx context.Context, caller Caller, req HoldRequest) (*hall, vacancy, seats.Wish, error) {
	h, v, err := s.halls.read(ctx, s.pool, req.Event)
	if err == nil && !caller.sees(req.Event, v.Organizer, v.Status) {
		err = ErrNotFound
	}
	if err == nil {
		err = onSale(v.Status, v.SaleStarted, v.SaleEnded, newSale)
	}
	if err != nil {
		return h, v, seats.Wish{}, err
	}
	channels := []int32{0}
	if v.Channels {
		reach, err := reachOf(ctx, s.pool, caller, req.Event)
		if err != nil {
			return h, v, seats.Wish{}, err
		}
		channels = reach.Channels
	}
	prices, err := req.Best.prices(ctx, s.pool, req.Event)
	if err != nil {
		return h, v, seats.Wish{}, err
	}
	wish, err := h.wish(*req.Best, channels, prices)
	return h, v, wish, err
}

// holdChosen holds a choice that was claimed, all of it or none.
func (s *Service) holdChosen(ctx context.Context, caller Caller, key Idempotency, req HoldRequest, h *hall, choice seats.Choice) (hold Hold, err error) {
	won := false
	defer func() { h.settle(choice.Seats, won) }() // also after a panic: nobody else would
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		opened, err := s.openHold(ctx, tx, caller, req)
		if err != nil {
			return err
		}
		if err := queries.HallEnter(ctx, tx, int64(req.Event)); err != nil {
			return fmt.Errorf("enter the hall: %w", err)
		}
		if hold, err = opened.lockAndTake(ctx, tx, caller, req.Best.wants(choice.Seats)); err != nil {
			return err
		}
		hold.Together, hold.LastResort = &choice.Together, choice.LastResort
		return remember(ctx, tx, req.Event, caller, key, hold)
	})
	won = err == nil
	return hold, err
}

// holdQueued chooses inside its transaction, while nobody else who wants the best is writing, and again when somebody who named seats was
// quicker. It keeps no seat's row while it reads: each try is undone as a whole.
func (s *Service) holdQueued(ctx context.Context, caller Caller, key Idempotency, req HoldRequest, h *hall) (hold Hold, err error) {
	select {
	case h.queue <- struct{}{}: // one of each node, so that nobody waits for a lock longer than a lock is waited for
		defer func() { <-h.queue }()
	case <-ctx.Done():
		return hold, ctx.Err()
	}
	var claims []seats.ID
	won := false
	defer func() { h.settle(claims, won) }()
	drawing, layout := h.known()
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		opened, err := s.openHold(ctx, tx, caller, req)
		if err != nil {
			return err
		}
		if err := queries.HallQueue(ctx, tx, int64(req.Event)); err != nil {
			return fmt.Errorf("wait in the queue: %w", err)
		}
		prices, err := req.Best.prices(ctx, tx, req.Event)
		if err != nil {
			return err
		}
		wish, err := h.wish(*req.Best, opened.event.Channels, prices)
		if err != nil {
			return err
		}
		for range queuedTries {
			read, err := seats.ReadAvailability(ctx, tx, req.Event)
			if err != nil {
				return err
			}
			if drawing == nil || read.Layout != layout {
				return ErrBusy // drawn anew at this moment
			}
			choice, ok, claimed := h.claimIn(drawing, read.In(drawing), wish)
			if !ok {
				return ErrNoBlock
			}
			if claimed {
				claims = append(claims, choice.Seats...)
			}
			err = pgx.BeginFunc(ctx, tx, func(try pgx.Tx) error {
				hold, err = opened.lockAndTake(ctx, try, caller, req.Best.wants(choice.Seats))
				return err
			})
			if err == nil {
				hold.Together, hold.LastResort = &choice.Together, choice.LastResort
				return remember(ctx, tx, req.Event, caller, key, hold)
			}
			if !errors.Is(err, errLost) {
				return err
			}
		}
		return ErrBusy
	})
	won = err == nil
	return hold, err
}

// lockAndTake is take for seats that were chosen in memory. Whoever has one of them keeps others waiting: they cannot do better.
func (o openedHold) lockAndTake(ctx context.Context, tx pgx.Tx, caller Caller, wants []seats.Want) (Hold, error) {
	n, err := seats.Lock(ctx, tx, o.hold.Event, seats.IDs(wants))
	if err != nil {
		return Hold{}, fmt.Errorf("lock seats: %w", err)
	}
	if n < len(wants) {
		return Hold{}, errLost
	}
	return o.take(ctx, tx, caller, wants, false)
}
