package booking_test

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"testing"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/seats"
)

// row is the seats page of the stalls with all seats of planned but those that are left out.
func row(category string, without ...int) []byte {
	var body bytes.Buffer
	body.WriteString(`{"rows":[{"label":"A","seats":[`)
	comma := ""
	for i := range 10 {
		if !slices.Contains(without, i+1) {
			n := string([]byte("12345678910")[i:min(i+1, 9)])
			if i == 9 {
				n = "10"
			}
			body.WriteString(comma + `{"number":"` + n + `","id":"seat-` + n + `","category":"` + category + `","x":` + string("0123456789"[i]) + `,"y":1}`)
			comma = ","
		}
	}
	body.WriteString(`]}]}`)
	return body.Bytes()
}

func savePage(t *testing.T, w World, who booking.Caller, fence int64, item int32, page string, body []byte) {
	t.Helper()
	_, err := w.Service.SaveDraftPage(t.Context(), who, w.Event, fence, item, page, body)
	must(t, err)
}

func priceOf(t *testing.T, w World, category string) int64 {
	t.Helper()
	list, err := w.Service.Prices(t.Context(), w.Owner, w.Event)
	must(t, err)
	i := slices.IndexFunc(list.Prices, func(p booking.Price) bool { return p.Category == category && p.From == nil })
	if i < 0 {
		return -1
	}
	return list.Prices[i].Amount
}

func TestPublishedDraftIsOnSaleWhole(t *testing.T) {
	ctx := t.Context()
	w, lena, _ := editing(t)
	fence := take(t, w, lena, 0, "")
	savePage(t, w, lena, fence, 0, booking.PagePlan, []byte(`{"format":"seatfence-plan/1","name":"Hall","categories":[{"name":"A"},{"name":"B"},{"name":"C"}],"areas":[{"name":"Floor","category":"B","capacity":12}]}`))
	savePage(t, w, lena, fence, 1, booking.PageSeats, row("C", 10))
	savePage(t, w, lena, fence, 1, booking.PagePrices, []byte(`{"prices":[{"category":"C","type":"standard","amount":7000},{"category":"A","type":"standard","amount":1234}]}`))
	savePage(t, w, lena, fence, 0, booking.PageVariables, []byte(`{"name":"The Storm","sale_starts_at":"2020-01-01T00:00:00Z","sale_ends_at":"2099-01-01T00:00:00Z","order_limit":3,"orphan_rule":false}`))
	dry, err := w.Service.PublishDraft(ctx, lena, w.Event, fence, true)
	if err != nil || dry.Dropped != 1 || dry.Added != 2 || dry.Recategorised != 9 || dry.Plan.Version != 1 {
		t.Fatalf("dry run says %+v, %v", dry, err)
	}
	if event, err := w.Service.EventHead(ctx, lena, w.Event); err != nil || event.Plan.Version != 1 || event.Name == "The Storm" {
		t.Fatalf("the dry run made %+v, %v", event, err)
	}
	done, err := w.Service.PublishDraft(ctx, lena, w.Event, fence, false)
	if err != nil || done.Redrawn != dry.Redrawn || done.Plan.Version != 2 {
		t.Fatalf("published %+v, %v", done, err)
	}
	event, err := w.Service.EventHead(ctx, lena, w.Event)
	if err != nil || *event.Plan != done.Plan || event.Name != "The Storm" || event.OrderLimit == nil || *event.OrderLimit != 3 {
		t.Errorf("the event is %+v, %v", event, err)
	}
	if a, b, c := priceOf(t, w, "A"), priceOf(t, w, "B"), priceOf(t, w, "C"); a != 1234 || b != FloorPrice || c != 7000 {
		t.Errorf("prices are %d, %d and %d", a, b, c)
	}
	again, err := w.Service.PublishDraft(ctx, lena, w.Event, fence, false)
	if err != nil || again.Plan != done.Plan || again.Dropped+again.Added+again.Recategorised > 0 {
		t.Errorf("once more: %+v, %v", again, err)
	}
}

func TestDraftThatWouldTakeSeatsFromPeopleIsRefusedAndNamesThem(t *testing.T) {
	ctx := t.Context()
	w, lena, _ := editing(t)
	w.MustHold(t, Buyer(), 2)
	if _, err := w.Book(ctx, Buyer(), 5); err != nil {
		t.Fatal(err)
	}
	fence := take(t, w, lena, 0, "")
	savePage(t, w, lena, fence, 1, booking.PageSeats, row("A", 2, 5, 7))
	for _, dry := range []bool{true, false} {
		_, err := w.Service.PublishDraft(ctx, lena, w.Event, fence, dry)
		refusal := refused(t, err, booking.CodePlan)
		if len(refusal.Seats) != 2 || refusal.Seats[0].ID != 2 || refusal.Seats[1].ID != 5 {
			t.Errorf("refused because of %+v", refusal.Seats)
		}
	}
	event, err := w.Service.EventHead(ctx, lena, w.Event)
	must(t, err)
	found, err := w.Service.Plan(ctx, w.Owner, event.Plan.Plan)
	if err != nil || len(found.Versions) != 1 {
		t.Errorf("a refused draft left %d versions, %v", len(found.Versions), err)
	}
	if seat := stateOf(t, w, 7); seat.State != seats.Free {
		t.Errorf("a refused draft made seat 7 %s", seat.State)
	}
}

func TestDraftsThatCannotBePublished(t *testing.T) {
	ctx := t.Context()
	w, lena, omar := editing(t)
	page := take(t, w, lena, 1, booking.PageSeats)
	_, err := w.Service.PublishDraft(ctx, lena, w.Event, page, false)
	wantErr(t, err, booking.ErrLockLost)
	savePage(t, w, lena, page, 1, booking.PageSeats, row("Z"))
	fence := take(t, w, lena, 0, "")
	_, err = w.Service.PublishDraft(ctx, omar, w.Event, fence, true)
	wantErr(t, err, booking.ErrLockLost)
	_, err = w.Service.PublishDraft(ctx, lena, w.Event, fence, false)
	if fault, ok := errors.AsType[*booking.InvalidError](err); !ok || fault.Code != "unknown_category" || fault.Pointer[:len("/items/0/seats/rows/0/")] != "/items/0/seats/rows/0/" {
		t.Errorf("a seat of no category: %v", err)
	}
	savePage(t, w, lena, fence, 1, booking.PageSeats, row("A"))
	savePage(t, w, lena, fence, 1, booking.PagePrices, []byte(`{"prices":[{"category":"A","type":"child","amount":1}]}`))
	_, err = w.Service.PublishDraft(ctx, lena, w.Event, fence, false)
	if fault, ok := errors.AsType[*booking.InvalidError](err); !ok || fault.Pointer != "/items/0/prices/prices/0/type" {
		t.Errorf("a price of no type: %v", err)
	}
	savePage(t, w, lena, fence, 1, booking.PagePrices, []byte(`{"prices":[]}`))
	take(t, w, omar, 0, "")
	_, err = w.Service.PublishDraft(ctx, lena, w.Event, fence, false)
	wantErr(t, err, booking.ErrLockLost)

	spec := Spec()
	bare := w
	bare.Event = w.NewEvent(t, spec)
	_, err = w.Service.Draft(ctx, lena, bare.Event)
	wantErr(t, err, booking.ErrNoPlan)
}

func TestDraftOfAnotherPlanIsNotPublishedOverIt(t *testing.T) {
	ctx := t.Context()
	w, p, _ := planned(t)
	fence := take(t, w, w.Owner, 0, "")
	p.Sections[0].Rows[0].Seats = p.Sections[0].Rows[0].Seats[:9]
	_, err := redraw(t, w, p)
	must(t, err)
	_, err = w.Service.PublishDraft(ctx, w.Owner, w.Event, fence, false)
	wantErr(t, err, booking.ErrDraftOutdated)
	_, err = wholeOf(t, w, w.Owner, func(*booking.Draft) {})
	must(t, err)
	if done, err := w.Service.PublishDraft(ctx, w.Owner, w.Event, take(t, w, w.Owner, 0, ""), false); err != nil || stateOf(t, w, 10).State != seats.Free {
		t.Errorf("after its editor has looked at it: %+v, %v", done, err)
	}
}

// Publishing and the taking of the fence race: what the new editor reads is what the event is, or the old one was refused.
func TestPublishingRacesWithANewEditor(t *testing.T) {
	ctx := t.Context()
	w, lena, omar := editing(t)
	for i := range 20 {
		fence := take(t, w, lena, 0, "")
		savePage(t, w, lena, fence, 1, booking.PageSeats, row("A", i%9+1))
		var crowd sync.WaitGroup
		crowd.Go(func() {
			_, err := w.Service.PublishDraft(ctx, lena, w.Event, fence, false)
			if err != nil && !errors.Is(err, booking.ErrLockLost) && !errors.Is(err, booking.ErrBusy) {
				t.Errorf("publish: %v", err)
			}
		})
		crowd.Go(func() {
			if _, err := w.Service.TakeEdit(ctx, omar, w.Event, 0, ""); err != nil {
				t.Errorf("take: %v", err)
			}
		})
		crowd.Wait()
	}
	if n := deadlocks(t, w); n > 0 {
		t.Errorf("%d deadlocks", n)
	}
}
