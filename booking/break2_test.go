package booking_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/seats"
	"seatfence/seats/plan"
)

// Everything at once on two nodes: only refusals of the domain, no deadlock, no broken invariant.
func TestEverythingAtOnce(t *testing.T) {
	w, p, first := planned(t)
	ctx := t.Context()
	wider := p
	wider.Areas = []plan.Area{{Name: "Floor", Category: "B", Capacity: 14}}
	second := published(t, w, wider)
	strict := true
	if _, err := w.Service.UpdateEvent(ctx, w.Owner, w.Event, booking.EventChange{OrphanRule: &strict}); err != nil {
		t.Fatal(err)
	}
	agency := partner(t, w)
	nodes := []*booking.Service{w.Service, booking.New(w.Pool, booking.DefaultLimits)}
	until := time.Now().Add(6 * time.Second)
	var all sync.WaitGroup
	var mu sync.Mutex
	odd := map[string]int{}
	check := func(what string, err error) {
		if err == nil {
			return
		}
		if errors.Is(err, booking.ErrUnavailable) || isUnknown(err) {
			mu.Lock()
			odd[what+": "+err.Error()]++
			mu.Unlock()
		}
	}
	for g := range 12 {
		all.Go(func() {
			s := nodes[g%2]
			for time.Now().Before(until) {
				c := Buyer()
				if rand.N(5) == 0 {
					c = agency
				}
				id := seats.ID(1 + rand.N(10))
				switch rand.N(11) {
				case 0:
					h, _, err := s.Hold(ctx, c, Key(), booking.HoldRequest{Event: w.Event, Seats: Wants(id)})
					check("hold", err)
					if err == nil {
						_, err = s.ChangeHold(ctx, c, h.ID, booking.HoldChange{Add: Wants(1 + id%10), Extend: true})
						check("change", err)
						check("release", s.Release(ctx, c, h.ID))
					}
				case 1:
					h, _, err := s.Hold(ctx, c, Key(), booking.HoldRequest{Event: w.Event, Best: &booking.BestWish{Quantity: 1 + rand.N(3)}})
					check("best", err)
					if err == nil {
						b, _, err := s.Book(ctx, c, Key(), booking.BookRequest{Hold: &h.ID, Name: "Lena", Email: "l@example.com"})
						check("confirm", err)
						if err == nil {
							_, err = s.Cancel(ctx, c, b.ID)
							check("cancel", err)
						}
					}
				case 2:
					req := w.Request(id)
					b, _, err := s.Book(ctx, c, Key(), req)
					check("book", err)
					if err == nil {
						_, err = s.Cancel(ctx, c, b.ID)
						check("cancel", err)
					}
				case 3:
					h, _, err := s.Hold(ctx, c, Key(), booking.HoldRequest{Event: w.Event, Places: &booking.AreaPlaces{Area: 1, Quantity: 1 + rand.N(3)}})
					check("places", err)
					if err == nil {
						check("release", s.Release(ctx, c, h.ID))
					}
				case 4:
					b, _, err := s.Block(ctx, w.Owner, Key(), w.Event, []seats.ID{id}, "camera")
					check("block", err)
					if err == nil {
						check("unblock", s.Unblock(ctx, w.Owner, b.ID))
					}
				case 5:
					ch, _, err := s.CreateChannel(ctx, w.Owner, Key(), w.Event, booking.NewChannel{Name: Key().Key, Keys: []uuid.UUID{agency.ID}, Seats: []seats.ID{id}, Places: &booking.AreaPlaces{Area: 1, Quantity: 1}})
					check("channel", err)
					if err == nil {
						_, err = s.UpdateChannel(ctx, w.Owner, w.Event, ch.ID, booking.ChannelChange{Drop: []seats.ID{id}})
						check("channel change", err)
						check("channel delete", s.DeleteChannel(ctx, w.Owner, w.Event, ch.ID))
					}
				case 6:
					ref := []booking.PlanRef{first, second}[rand.N(2)]
					_, err := s.ChangePlan(ctx, w.Owner, w.Event, booking.PlanChange{Plan: ref.Plan, Version: ref.Version})
					check("plan", err)
				case 7:
					_, err := s.SetPrices(ctx, w.Owner, w.Event, booking.PriceList{Prices: []booking.Price{{Category: "A", Amount: rand.Int64N(1000)}, {Category: "B", Amount: 5}}})
					check("prices", err)
				case 8:
					name := "x"
					_, err := s.UpdateEvent(ctx, w.Owner, w.Event, booking.EventChange{Name: &name})
					check("event", err)
				case 9:
					req := booking.HoldRequest{Event: w.Event, Seats: Wants(id)}
					key := Key()
					h, _, err := s.Hold(ctx, c, key, req)
					if err != nil {
						err = s.Instead(ctx, c, key, req, err)
						check("instead", err)
						if e, ok := errors.AsType[*booking.SeatsError](err); ok && e.Instead != nil {
							check("release", s.Release(ctx, c, e.Instead.ID))
						}
					} else {
						check("release", s.Release(ctx, c, h.ID))
					}
				case 10:
					_, err := s.Event(ctx, c, w.Event)
					check("read", err)
					_, err = s.Seats(ctx, c, w.Event, nil)
					check("seats", err)
				}
			}
		})
	}
	all.Wait()
	for what, n := range odd {
		t.Errorf("%d times %s", n, what)
	}
}

func isUnknown(err error) bool {
	if _, ok := errors.AsType[*booking.SeatsError](err); ok {
		return false
	}
	if _, ok := errors.AsType[*booking.InvalidError](err); ok {
		return false
	}
	for _, known := range []error{booking.ErrBusy, booking.ErrNoBlock, booking.ErrSoldOut, booking.ErrHoldExpired, booking.ErrHoldClosed, booking.ErrHoldLimit, booking.ErrNotFound} {
		if errors.Is(err, known) {
			return false
		}
	}
	return true
}
