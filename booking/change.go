package booking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/internal/failpoint"
	"seatfence/seats"
)

// HoldChange adds seats to an open hold, drops some, extends it, or all three at once. A seat of Add that the hold has already takes the
// ticket type that is named with it, at what that costs now; otherwise it changes nothing, so that the request can be repeated. ExpectedTotal, in minor units, refuses the change with ErrPriceChanged if the hold would
// then cost something else.
type HoldChange struct {
	Add           []seats.Want
	Drop          []seats.ID
	Extend        bool
	SeenEnd       *time.Time // extend only if the hold still ends then: repeating the request extends once
	ExpectedTotal *int64
}

// ChangeHold changes the caller's own open hold, all or nothing. Only Extend moves its end; whoever adds or drops seats leaves the
// check-out. Seats can be dropped whatever has become of the event.
func (s *Service) ChangeHold(ctx context.Context, caller Caller, id HoldID, change HoldChange) (hold Hold, err error) {
	if err := s.checkChange(change); err != nil {
		return Hold{}, err
	}
	err = s.judging(ctx, caller, id.Event, func(lastResort bool) error {
		return s.inTx(ctx, func(tx pgx.Tx) error {
			hold, err = s.changeHold(ctx, tx, caller, id, change, lastResort)
			return err
		})
	})
	if errors.Is(err, errUnsold) {
		err = cmp.Or(s.soldAs(ctx, id.Event, change.Add, func(i int) string { return fmt.Sprintf("/add/%d", i) }), ErrBusy)
	}
	err = s.refusal(ctx, err, caller, id.Event, change.Add)
	if fault, ok := errors.AsType[*InvalidError](err); ok {
		fault.Pointer = strings.Replace(fault.Pointer, "/seats/", "/add/", 1) // what is held is named by its place in the request
	}
	return hold, answer(err)
}

func (s *Service) checkChange(change HoldChange) error {
	if len(change.Add) == 0 && len(change.Drop) == 0 && !change.Extend {
		return invalid("", "no_change", "one of add, drop and extend is needed")
	}
	if err := s.checkWants("/add", change.Add); err != nil {
		return err
	}
	for _, id := range change.Drop {
		if slices.ContainsFunc(change.Add, func(w seats.Want) bool { return w.ID == id }) {
			return invalid("/drop", "duplicate_seat", "seat %d cannot be added and dropped at once", id)
		}
	}
	return s.checkWants("/drop", seats.Any(change.Drop...))
}

func (s *Service) changeHold(ctx context.Context, tx pgx.Tx, caller Caller, id HoldID, change HoldChange, lastResort bool) (Hold, error) {
	if len(change.Add) > 0 {
		if err := lockCap(ctx, tx, caller, id.Event); err != nil {
			return Hold{}, err
		}
	}
	event, err := lockVisible(ctx, tx, caller, id.Event)
	if err != nil {
		return Hold{}, err
	}
	selling := onSale(event.Status, event.SaleStarted, event.SaleEnded, newSale)
	if selling != nil && (len(change.Add) > 0 || change.Extend) {
		return Hold{}, selling
	}
	row, kept, err := lockHold(ctx, tx, caller, id)
	if err != nil {
		return Hold{}, err
	}
	dropped, adds, retyped, rest, err := split(kept, change)
	if err != nil {
		return Hold{}, err
	}
	switch n := len(rest) + len(adds); {
	case n == 0:
		return Hold{}, invalid("/drop", "empty_hold", "a hold keeps at least one seat; release it instead")
	case n > s.limits.Seats:
		return Hold{}, invalid("/add", "too_many_seats", "at most %d seats can be held at once", s.limits.Seats)
	}
	if len(adds) > 0 {
		if err := checkOrder(event, len(rest)+len(adds)); err != nil {
			return Hold{}, err
		}
		if err := s.checkCap(ctx, tx, caller, id.Event, len(adds)-len(dropped)); err != nil {
			return Hold{}, err
		}
	}
	alone := false
	if selling == nil && len(adds)+len(dropped) > 0 && judges(event, caller) {
		choice := choiceOf{ids: slices.Concat(rest, seats.IDs(adds)), own: idsOf(kept), lastResort: lastResort}
		alone, err = s.judge(ctx, tx, event, choice)
	} else {
		err = lockChanged(ctx, tx, id.Event, kept, adds)
	}
	if err != nil {
		return Hold{}, err
	}
	if err := drop(ctx, tx, caller, id, dropped); err != nil {
		return Hold{}, err
	}
	until := row.ExpiresAt
	if change.Extend && (change.SeenEnd == nil || change.SeenEnd.Equal(row.ExpiresAt)) {
		if until, err = s.extend(ctx, tx, id, row, rest); err != nil {
			return Hold{}, err
		}
	}
	if len(adds) > 0 {
		if err := failpoint.Hit(ctx, failpoint.BeforeWrite); err != nil {
			return Hold{}, err
		}
		taken, err := seats.HoldFor(ctx, tx, id.Event, id.Key, caller.ID, until, caller.reach(event.Channels), adds, false)
		if err != nil {
			return Hold{}, err
		}
		if len(taken) < len(adds) {
			return Hold{}, errLost
		}
	}
	if err := retype(ctx, tx, id, retyped); err != nil {
		return Hold{}, err
	}
	if len(adds)+len(dropped)+len(retyped) > 0 {
		n, err := queries.HoldSetCheckout(ctx, tx, db.HoldSetCheckoutParams{EventID: int64(id.Event), ID: id.Key})
		if err != nil {
			return Hold{}, err
		}
		if n == 0 && len(adds)+len(retyped) > 0 {
			return Hold{}, ErrHoldExpired
		}
	}
	hold, err := s.readHold(ctx, tx, caller, id)
	hold.LastResort = alone
	if err == nil && change.ExpectedTotal != nil && *change.ExpectedTotal != hold.Total {
		return Hold{}, ErrPriceChanged
	}
	return hold, err
}

// split sorts the seats of a hold into those that go and those that stay, and the additions into those that it does not have and those
// that are to be of another type.
func split(kept []HeldSeat, change HoldChange) (dropped []seats.Taken, adds, retyped []seats.Want, rest []seats.ID, err error) {
	have := map[seats.ID]string{}
	for _, seat := range kept {
		have[seat.ID] = seat.Type
		if slices.Contains(change.Drop, seat.ID) {
			dropped = append(dropped, seat.Taken)
		} else {
			rest = append(rest, seat.ID)
		}
	}
	if len(dropped) < len(change.Drop) {
		return nil, nil, nil, nil, invalid("/drop", "not_in_hold", "the hold does not have one of these seats")
	}
	for _, w := range change.Add {
		switch has, known := have[w.ID]; {
		case !known:
			adds = append(adds, w)
		case w.Type != "" && w.Type != has:
			retyped = append(retyped, w)
		}
	}
	return dropped, adds, retyped, rest, nil
}

// errUnsold says that a seat is not sold as the type it was to be of. It never leaves the package: soldAs says which.
var errUnsold = errors.New("a seat is not sold as this ticket type")

// retype sells seats of the hold as other ticket types.
func retype(ctx context.Context, tx pgx.Tx, id HoldID, wants []seats.Want) error {
	if len(wants) == 0 {
		return nil
	}
	p := db.HoldSeatRetypeParams{EventID: int64(id.Event), HoldID: id.Key}
	for _, w := range wants {
		p.Ids, p.Types = append(p.Ids, w.ID), append(p.Types, w.Type)
	}
	changed, err := queries.HoldSeatRetype(ctx, tx, p)
	if err == nil && len(changed) < len(wants) {
		err = errUnsold
	}
	return err
}

// lockChanged takes all rows that the change may write in one go, so that the order of ids holds across drop, extend and add.
func lockChanged(ctx context.Context, tx pgx.Tx, event seats.EventID, kept []HeldSeat, adds []seats.Want) error {
	ids := append(idsOf(kept), seats.IDs(adds)...)
	n, err := seats.Lock(ctx, tx, event, ids)
	if err == nil && n < len(ids) {
		return errLost
	}
	return err
}

func idsOf(kept []HeldSeat) []seats.ID {
	ids := make([]seats.ID, len(kept))
	for i, seat := range kept {
		ids[i] = seat.ID
	}
	return ids
}

func drop(ctx context.Context, tx pgx.Tx, caller Caller, id HoldID, dropped []seats.Taken) error {
	if len(dropped) == 0 {
		return nil
	}
	if _, err := seats.Release(ctx, tx, id.Event, id.Key, HoldReleased, &caller.ID, dropped); err != nil {
		return err
	}
	ids := make([]seats.ID, len(dropped))
	for i, seat := range dropped {
		ids[i] = seat.ID
	}
	return queries.HoldSeatDelete(ctx, tx, db.HoldSeatDeleteParams{EventID: int64(id.Event), HoldID: id.Key, Ids: ids})
}

// extend moves the end of the hold and of its seats together. The hold's row is locked and live, so all of its seats are still its own
// unless their time ran out between two statements.
func (s *Service) extend(ctx context.Context, tx pgx.Tx, id HoldID, row db.HoldLockRow, ids []seats.ID) (until time.Time, err error) {
	if int(row.Extensions) >= s.limits.Extensions || !row.ExpiresAt.Before(row.EndsAt) {
		return until, ErrExtensionLimit
	}
	until, err = queries.HoldExtend(ctx, tx, db.HoldExtendParams{EventID: int64(id.Event), ID: id.Key, Ttl: s.limits.HoldTTL})
	if db.NotFound(err) {
		return until, ErrHoldExpired
	}
	if err != nil {
		return until, err
	}
	moved, err := seats.Extend(ctx, tx, id.Event, id.Key, until, ids)
	if err == nil && len(moved) < len(ids) {
		return until, ErrHoldExpired
	}
	return until, err
}
