package booking_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/seats/plan"
)

// editor is another user of the World's organizer.
func editor(w World) booking.Caller {
	return booking.Caller{Kind: booking.Organizer, ID: uuid.New(), Organizer: w.Owner.Organizer, Staff: true}
}

// editing is a World with a draft and two of its editors.
func editing(t *testing.T) (w World, lena, omar booking.Caller) {
	t.Helper()
	w, _, _ = planned(t)
	return w, editor(w), editor(w)
}

func take(t *testing.T, w World, who booking.Caller, item int32, page string) int64 {
	t.Helper()
	fence, err := w.Service.TakeEdit(t.Context(), who, w.Event, item, page)
	must(t, err)
	return fence
}

// save saves a page of the stalls, or their name.
func save(t *testing.T, w World, who booking.Caller, fence int64, page string) error {
	t.Helper()
	body := map[string]string{
		booking.PageDetails: `{"name":"Stalls"}`, booking.PagePrices: `{"prices":[{"category":"A","type":"standard","amount":4500}]}`,
		booking.PageSeats: `{"rows":[{"label":"A","seats":[{"number":"1","category":"A","x":0,"y":1}]}]}`,
	}[page]
	_, err := w.Service.SaveDraftPage(t.Context(), who, w.Event, fence, 1, page, []byte(body))
	return err
}

func TestStaleEditorIsRefusedBeforeAndAfterTheNewOnesFirstSave(t *testing.T) {
	w, lena, omar := editing(t)
	for name, c := range map[string]struct{ first, then string }{
		"page after page":   {booking.PageSeats, booking.PageSeats},
		"whole after page":  {booking.PageSeats, ""},
		"page after whole":  {"", booking.PageSeats},
		"whole after whole": {"", ""},
	} {
		item := func(page string) int32 {
			if page == "" {
				return 0
			}
			return 1
		}
		late := take(t, w, lena, item(c.first), c.first)
		if err := save(t, w, lena, late, booking.PageSeats); err != nil {
			t.Fatalf("%s: the editor who has it is refused: %v", name, err)
		}
		fence := take(t, w, omar, item(c.then), c.then)
		if fence <= late {
			t.Fatalf("%s: the fence went from %d to %d", name, late, fence)
		}
		if err := save(t, w, lena, late, booking.PageSeats); !errors.Is(err, booking.ErrLockLost) {
			t.Errorf("%s: before the first save of the new editor the old one is told %v", name, err)
		}
		if err := save(t, w, omar, fence, booking.PageSeats); err != nil {
			t.Errorf("%s: the new editor is refused: %v", name, err)
		}
		if err := save(t, w, lena, late, booking.PageSeats); !errors.Is(err, booking.ErrLockLost) {
			t.Errorf("%s: after it the old one is told %v", name, err)
		}
		for _, wrong := range []int64{-1, 0, fence + 1, 1 << 62} {
			if err := save(t, w, omar, wrong, booking.PageSeats); !errors.Is(err, booking.ErrLockLost) {
				t.Errorf("%s: fence %d is told %v", name, wrong, err)
			}
		}
	}
}

func TestEditorsOfOtherPagesDoNotDisturbEachOther(t *testing.T) {
	w, lena, omar := editing(t)
	mine, theirs := take(t, w, lena, 1, booking.PageSeats), take(t, w, omar, 1, booking.PagePrices)
	for range 2 {
		must(t, save(t, w, lena, mine, booking.PageSeats))
		must(t, save(t, w, omar, theirs, booking.PagePrices))
	}
	wantErr(t, save(t, w, lena, mine, booking.PagePrices), booking.ErrLockLost)
	wantErr(t, save(t, w, lena, mine, booking.PageDetails), booking.ErrLockLost)
}

func TestFenceIsGoodForWhoItWasGivenTo(t *testing.T) {
	w, lena, omar := editing(t)
	fence := take(t, w, lena, 1, booking.PageSeats)
	wantErr(t, save(t, w, omar, fence, booking.PageSeats), booking.ErrLockLost)
	must(t, save(t, w, lena, fence, booking.PageSeats))
	fence = take(t, w, lena, 0, "")
	wantErr(t, save(t, w, omar, fence, booking.PageSeats), booking.ErrLockLost)
	must(t, save(t, w, lena, fence, booking.PageSeats))
	limited := editor(w)
	limited.Events = nil
	limited.Organizer++
	_, err := w.Service.TakeEdit(t.Context(), limited, w.Event, 0, "")
	wantErr(t, err, booking.ErrNotFound)
	_, err = w.Service.Draft(t.Context(), Buyer(), w.Event)
	wantErr(t, err, booking.ErrForbidden)
	_, err = w.Service.TakeEdit(t.Context(), lena, w.Event, 2, booking.PageSeats)
	wantErr(t, err, booking.ErrNotFound)
	if next := take(t, w, omar, 0, ""); next != fence+1 {
		t.Errorf("a page that is not there took a fence: %d after %d", next, fence)
	}
}

// Saves race with somebody who begins to edit: whatever comes to the row first, no save is taken after the new fence was given.
func TestSavesThatRaceWithANewEditor(t *testing.T) {
	ctx := t.Context()
	w, lena, omar := editing(t)
	for i := range 100 {
		at := []struct {
			item int32
			page string
		}{{0, ""}, {1, booking.PageSeats}}[i%2]
		fence := take(t, w, lena, at.item, at.page)
		var crowd sync.WaitGroup
		var revisions [2]int64
		for n := range 2 {
			crowd.Go(func() {
				saved, err := w.Service.SaveDraftPage(ctx, lena, w.Event, fence, 1, booking.PageSeats, []byte(`{"rows":[]}`))
				if err != nil && !errors.Is(err, booking.ErrLockLost) {
					t.Errorf("save: %v", err)
				}
				revisions[n] = saved.Revision
			})
		}
		var then int64
		crowd.Go(func() {
			next, err := w.Service.TakeEdit(ctx, omar, w.Event, 1, booking.PageSeats)
			if err != nil {
				t.Errorf("take: %v", err)
			}
			page, err := w.Service.DraftPage(ctx, omar, w.Event, 1, booking.PageSeats)
			if err != nil {
				t.Errorf("read: %v", err)
			}
			then = page.Revision
			if saved, err := w.Service.SaveDraftPage(ctx, omar, w.Event, next, 1, booking.PageSeats, []byte(`{"rows":[]}`)); err != nil || saved.Revision != then+1 {
				t.Errorf("the new editor read revision %d and saved %d, %v", then, saved.Revision, err)
			}
		})
		crowd.Wait()
		for _, r := range revisions {
			if r > then {
				t.Fatalf("round %d: the old editor saved revision %d after the new one had read %d", i, r, then)
			}
		}
	}
	if n := deadlocks(t, w); n > 0 {
		t.Errorf("%d deadlocks", n)
	}
}

func TestPagesThatAreNoneAreRefusedWithTheirPlace(t *testing.T) {
	w, lena, _ := editing(t)
	fence := take(t, w, lena, 0, "")
	variables := `{"name":"x","sale_starts_at":"2027-01-01T00:00:00Z","sale_ends_at":"2027-02-01T00:00:00Z","order_limit":0,"orphan_rule":true}`
	for _, c := range []struct {
		item                int32
		page, body, pointer string
	}{
		{1, booking.PageSeats, `{"rows":[{"label":"A","seats":[{"number":1,"category":"A","x":"a","y":1}]}]}`, "/rows/0/seats/0"},
		{1, booking.PageSeats, `{"rows":[{"label":"A","seats":[{"number":"1","category":"A","x":0,"y":1},{"number":"1","category":"A","x":1,"y":1}]}]}`, "/rows/0/seats/0"},
		{1, booking.PageSeats, `{"rows":{}}`, "/rows"},
		{1, booking.PageSeats, `{}`, ""},
		{1, booking.PageSeats, `{"rows":[],"name":"x"}`, ""},
		{1, booking.PageSeats, `[`, ""},
		{1, booking.PageSeats, `null`, ""},
		{1, booking.PageDetails, `{"name":""}`, ""},
		{1, booking.PageDetails, `{"name":"x","rows":[]}`, "/rows"},
		{1, booking.PagePrices, `{"prices":[{"category":"A","type":"standard","amount":-1}]}`, "/prices/0/amount"},
		{1, booking.PagePrices, `{"prices":[{"category":"A","type":"standard","amount":1},{"category":"A","type":"standard","amount":2}]}`, "/prices/1"},
		{1, booking.PagePrices, `{"prices":[{"category":"A","type":"standard","amount":"1"}]}`, "/prices/amount"},
		{1, booking.PagePrices, `{"prices":[]} {}`, ""},
		{0, booking.PagePlan, `{"name":"x"}`, "/format"},
		{0, booking.PagePlan, `{"format":"seatfence-plan/1","name":"x","categories":[{"name":"A"}],"sections":[{"name":"S","rows":[]}]}`, "/sections"},
		{0, booking.PagePlan, `{"format":"seatfence-plan/1","name":"x","categories":[{"name":"A"},{"name":"A"}]}`, "/categories/1"},
		{0, booking.PageVariables, strings.Replace(variables, "2027-02", "2026-02", 1), "/sale_ends_at"},
		{0, booking.PageVariables, strings.Replace(variables, `"x"`, `" "`, 1), "/name"},
		{0, booking.PageVariables, strings.Replace(variables, `,"orphan_rule":true`, ``, 1), "/orphan_rule"},
		{0, booking.PageVariables, strings.Replace(variables, `"name"`, `"status":"ended","name"`, 1), ""},
	} {
		_, err := w.Service.SaveDraftPage(t.Context(), lena, w.Event, fence, c.item, c.page, []byte(c.body))
		fault, ok := errors.AsType[*booking.InvalidError](err)
		if !ok || !strings.HasPrefix(fault.Pointer, c.pointer) {
			t.Errorf("%s %s: %v, want a fault at %q", c.page, c.body, err, c.pointer)
		}
	}
	draft, err := w.Service.Draft(t.Context(), lena, w.Event)
	if err != nil || draft.Revision != 0 {
		t.Errorf("refused saves made revision %d, %v", draft.Revision, err)
	}
}

// wholeOf saves a draft as it is.
func wholeOf(t *testing.T, w World, who booking.Caller, change func(*booking.Draft)) (booking.DraftSaved, error) {
	t.Helper()
	fence := take(t, w, who, 0, "")
	draft, err := w.Service.Draft(t.Context(), who, w.Event)
	must(t, err)
	change(&draft)
	var travelling bytes.Buffer
	enc := json.NewEncoder(&travelling)
	enc.SetEscapeHTML(false)
	must(t, enc.Encode(draft))
	var read booking.Draft
	must(t, json.Unmarshal(travelling.Bytes(), &read))
	return w.Service.SaveDraft(t.Context(), who, w.Event, fence, read)
}

func TestItemsKeepTheirNumbers(t *testing.T) {
	ctx := t.Context()
	w, lena, omar := editing(t)
	fence := take(t, w, lena, 0, "")
	balcony := func(name string) booking.DraftItem {
		return booking.DraftItem{Details: json.RawMessage(`{"name":"` + name + `"}`), Prices: json.RawMessage(`{"prices":[]}`), Seats: json.RawMessage(`{"rows":[]}`)}
	}
	key := Key()
	added, _, err := w.Service.AddDraftItem(ctx, lena, key, w.Event, fence, "Balcony")
	if err != nil || added.Items[0] != 2 {
		t.Fatalf("added %+v, %v", added, err)
	}
	again, replayed, err := w.Service.AddDraftItem(ctx, lena, key, w.Event, fence, "Balcony")
	if err != nil || !replayed || again.Items[0] != 2 {
		t.Fatalf("once more: %+v, %v, %v", again, replayed, err)
	}
	must(t, w.Service.RemoveDraftItem(ctx, lena, w.Event, fence, 2))
	wantErr(t, w.Service.RemoveDraftItem(ctx, lena, w.Event, fence, 2), booking.ErrNotFound)
	if added, _, err = w.Service.AddDraftItem(ctx, lena, Key(), w.Event, fence, "Gallery"); err != nil || added.Items[0] != 3 {
		t.Fatalf("a number was used again: %+v, %v", added, err)
	}
	page := take(t, w, omar, 3, booking.PageSeats)
	wantErr(t, w.Service.RemoveDraftItem(ctx, lena, w.Event, fence, 3), booking.ErrLockLost)
	_, _, err = w.Service.AddDraftItem(ctx, omar, Key(), w.Event, page, "Box")
	wantErr(t, err, booking.ErrLockLost)
	saved, err := wholeOf(t, w, lena, func(d *booking.Draft) { d.Items = append(d.Items[1:], balcony("Box")) })
	if err != nil || fmt.Sprint(saved.Items) != "[3 4]" {
		t.Fatalf("saved %+v, %v", saved, err)
	}
	_, err = wholeOf(t, w, lena, func(d *booking.Draft) { d.Items[0].Item = 1 })
	if fault, ok := errors.AsType[*booking.InvalidError](err); !ok || fault.Pointer != "/items/0/item" {
		t.Errorf("a removed item came back: %v", err)
	}
}

// furnished is a plan with everything that the format has, and members that only others know.
func furnished(t *testing.T) plan.Plan {
	t.Helper()
	p, report, err := plan.Import(t.Context(), strings.NewReader(`{"format":"seatfence-plan/1","name":"Hall <1> & é","focus":{"x":1.25,"y":-3},"zeta":{"b":1.50,"a":"<&>\u2028"},"alpha":[1,{"y":2,"x":1}],
		"categories":[{"name":"B","color":"#fff"},{"name":"A"}],
		"sections":[{"name":"Stalls","angle":{"z":1e2,"a":[]},"rows":[{"label":"A","curve":0.10,"seats":[
			{"number":"1","id":"g<1>","category":"A","x":0.125,"y":1,"accessible":true,"tags":["x","y"],"own":{"q":1,"b":2}},{"number":"2","category":"B","x":1,"y":1,"restricted_view":true}]},
			{"label":"T","table":"whole","seats":[{"number":"1","category":"A","x":5,"y":5,"inactive":true}]}]},{"name":"Empty","rows":[]},
			{"name":"Upper","rows":[{"label":"A","seats":[{"number":"1","category":"B","x":9,"y":9,"companion":true}]}]}],
		"areas":[{"name":"Floor","category":"B","capacity":10,"outline":[{"x":0,"y":0},{"x":1,"y":0},{"x":1,"y":1}],"kind":"x"}],
		"decorations":[{"kind":"stage","label":"Stage","outline":[{"x":0,"y":0}]}]}`), plan.Options{})
	if err != nil || report.Errors() > 0 {
		t.Fatalf("%v, %+v", err, report.Defects)
	}
	return p
}

func TestWholeDraftIsThePlanToTheByte(t *testing.T) {
	_, w := setup(t)
	p := furnished(t)
	ref := published(t, w, p)
	spec := Spec()
	spec.House, spec.Plan = plan.House{}, &ref
	spec.PriceList = booking.PriceList{Prices: []booking.Price{{Category: "A", Amount: 1}, {Category: "B", Amount: 2}}}
	w.Event = w.NewEvent(t, spec)
	_, err := wholeOf(t, w, editor(w), func(*booking.Draft) {})
	must(t, err)
	fence := take(t, w, w.Owner, 0, "")
	done, err := w.Service.PublishDraft(t.Context(), w.Owner, w.Event, fence, false)
	must(t, err)
	if done.Plan != ref {
		before, err := w.Service.PlanDocument(t.Context(), w.Owner, ref.Plan, ref.Version)
		must(t, err)
		after, err := w.Service.PlanDocument(t.Context(), w.Owner, done.Plan.Plan, done.Plan.Version)
		must(t, err)
		t.Fatalf("an unchanged draft made version %d; equal: %v\n%s\n%s", done.Plan.Version, bytes.Equal(before, after), before, after)
	}
}
