package faulttest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"

	"seatfence/booking"
	"seatfence/booking/bookingtest"
	"seatfence/db"
	"seatfence/internal/access"
	"seatfence/seats"
	"seatfence/seats/plan"
)

// Streams of full size, which take minutes:
//
//	go test ./internal/faulttest -run Stream -v -timeout 30m -full -kills 10
var (
	full  = flag.Bool("full", false, "tests of the stream have crowds of full size, and wait for the end of whatever lives on for a minute")
	kills = flag.Int("kills", 1, "how often a node is killed")
)

const (
	connecting = 32 // tabs at once
	sections   = 21 // of an event's plan
)

var pageNames = []string{booking.PageDetails, booking.PagePrices, booking.PageSeats}

// page is what an editor locks.
type page struct{ event, item, name string }

func (p page) path() string     { return "/v1/events/" + p.event + "/draft/" + p.item + "/" + p.name }
func (p page) resource() string { return "configurator:" + p.event }
func (p page) key() string      { return p.item + "/" + p.name }

// events makes so many events of one plan, whose configurators have sections with three pages each.
func (s *site) events(t *testing.T, n int) (ids []string) {
	t.Helper()
	spec := bookingtest.Spec()
	row := plan.HouseRow{Label: "A", Category: "Stalls", Seats: 4}
	spec.House.Sections = nil
	for i := range sections {
		spec.House.Sections = append(spec.House.Sections, plan.HouseSection{Name: fmt.Sprintf("Block %d", i+1), Rows: []plan.HouseRow{row}})
	}
	var document bytes.Buffer
	if err := spec.House.Plan().Export(&document); err != nil {
		t.Fatal(err)
	}
	drawn, report, err := plan.Import(t.Context(), &document, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	made, _, err := s.world.Service.ImportPlan(t.Context(), s.world.Owner, bookingtest.Key(), booking.PlanImport{Name: "Blocks", Document: drawn, Report: report})
	if err == nil {
		_, err = s.world.Service.PublishPlan(t.Context(), s.world.Owner, made.Plan, made.Number)
	}
	if err != nil {
		t.Fatalf("%v: %+v", err, report)
	}
	spec.House, spec.Plan = plan.House{}, &booking.PlanRef{Plan: made.Plan, Version: made.Number}
	spec.Prices = []booking.Price{{Category: "Stalls", Amount: bookingtest.SeatPrice}, {Category: "Standing", Amount: bookingtest.FloorPrice}}
	for range n {
		s.world.Event = s.world.NewEvent(t, spec)
		s.event = s.world.Event.String()
		ids = append(ids, s.event)
	}
	return ids
}

// pageOf is the i-th page of an event, of as many as it has.
func pageOf(event string, i int) page {
	return page{event, fmt.Sprint(i/len(pageNames) + 1), pageNames[i%len(pageNames)]}
}

// editors are organizers' programs: each has a key of its own, and so is somebody else.
func (s *site) editors(t *testing.T, n int) []*tab {
	t.Helper()
	organizer := ""
	if err := s.pool.QueryRow(t.Context(), "SELECT name FROM organizers WHERE id = $1", s.world.Owner.Organizer).Scan(&organizer); err != nil {
		t.Fatal(err)
	}
	keys, tabs := access.New(s.pool), make([]*tab, n)
	for i := range tabs {
		token, caller, err := keys.Create(t.Context(), organizer, "editor", access.ScopeOrganizer)
		if err != nil {
			t.Fatal(err)
		}
		tabs[i] = (&client{site: s, name: access.FormatID(caller.ID), token: token}).tab()
	}
	return tabs
}

// buyers are anonymous.
func (s *site) buyers(t *testing.T, n int) []*tab {
	t.Helper()
	tabs := make([]*tab, n)
	for i := range tabs {
		tabs[i] = s.buyer(t, "lena").tab()
	}
	return tabs
}

// together does something for each tab, several at once, and fails the test if that fails for any.
func together(t *testing.T, tabs []*tab, do func(i int, b *tab) error) {
	t.Helper()
	var wait sync.WaitGroup
	turns := make(chan struct{}, connecting)
	for i, b := range tabs {
		turns <- struct{}{}
		wait.Go(func() {
			defer func() { <-turns }()
			if err := do(i, b); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// connect connects tabs, which look at resources, and leave when the test ends.
func connect(t *testing.T, addr string, tabs []*tab, resources func(i int) []string) {
	t.Helper()
	t.Cleanup(func() {
		for _, b := range tabs {
			b.away()
		}
	})
	together(t, tabs, func(i int, b *tab) error {
		if err := b.connect(addr); err != nil {
			return err
		}
		return b.view(resources(i)...)
	})
}

func names(tabs ...[]*tab) (all []string) {
	for _, list := range tabs {
		for _, b := range list {
			all = append(all, b.name)
		}
	}
	return all
}

// hold holds a seat that the tab's page shows.
func (b *tab) hold(t testing.TB, v *server, event string, seat seats.ID) (id string) {
	t.Helper()
	r, err := b.tryPost(v.url, "/v1/events/"+event+"/holds", newKey(), fmt.Sprintf(`{"seats":[%d],"session":%q}`, seat, b.session))
	if err != nil {
		t.Fatal(err)
	}
	r.want(t, 201, "")
	return r.ID
}

// gonePages counts the pages that show holds, and those of them that are gone.
func (s *site) gonePages(t testing.TB) (all, gone int) {
	t.Helper()
	counts, err := db.New().HoldPageCounts(context.Background(), s.pool)
	if err != nil {
		t.Fatal(err)
	}
	return int(counts.Pages), int(counts.Gone)
}
