package booking_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"sync"
	"testing"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/db/dbtest"
	"seatfence/seats/plan"
)

const smallPlan = `{"format":"seatfence-plan/1","name":"Cellar","categories":[{"name":"Floor"}],
	"sections":[{"name":"Room","rows":[{"label":"A","seats":[{"number":"1","category":"Floor","x":0,"y":0},{"number":"2","category":"Floor","x":1,"y":0}]}]}]}`

// drawn is the import of a file for a plan at the venue.
func drawn(t *testing.T, file, venue string) booking.PlanImport {
	t.Helper()
	document, report, err := plan.Import(t.Context(), strings.NewReader(file), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return booking.PlanImport{Venue: venue, Document: document, Report: report}
}

func imported(t *testing.T, w World, in booking.PlanImport) booking.PlanVersion {
	t.Helper()
	version, replayed, err := w.Service.ImportPlan(t.Context(), w.Owner, Key(), in)
	if err != nil || replayed {
		t.Fatal(version, replayed, err)
	}
	return version
}

func TestAPlanIsImportedPublishedAndReadAsItWas(t *testing.T) {
	ctx, w := setup(t)
	made := imported(t, w, drawn(t, smallPlan, " Old Mill "))
	if made.Number != 1 || made.Status != booking.PlanValidated || made.Counts.Seats != 2 || made.PublishedAt != nil {
		t.Errorf("made %+v", made)
	}
	published, err := w.Service.PublishPlan(ctx, w.Owner, made.Plan, 1)
	if err != nil || published.Status != booking.PlanPublished || published.PublishedAt == nil {
		t.Fatalf("published %+v, %v", published, err)
	}
	again, err := w.Service.PublishPlan(ctx, w.Owner, made.Plan, 1)
	if err != nil || !again.PublishedAt.Equal(*published.PublishedAt) {
		t.Errorf("published again %+v, %v", again, err)
	}
	document, err := w.Service.PlanDocument(ctx, w.Owner, made.Plan, 1)
	if sum := sha256.Sum256(document); err != nil || !bytes.Equal(sum[:], made.Digest) {
		t.Errorf("the document is not what the digest is of: %v", err)
	}
	read := drawn(t, string(document), "Old Mill")
	if same := imported(t, w, read); same.Number != 1 || same.Plan != made.Plan || same.Status != booking.PlanPublished {
		t.Errorf("the export comes back as %+v", same)
	}
	found, err := w.Service.Plan(ctx, w.Owner, made.Plan)
	if err != nil || found.Venue != "Old Mill" || found.Name != "Cellar" || len(found.Versions) != 1 {
		t.Errorf("found %+v, %v", found, err)
	}
}

func TestAnotherDocumentIsAnotherVersionOfThePlanOfThatName(t *testing.T) {
	ctx, w := setup(t)
	first := imported(t, w, drawn(t, smallPlan, "Old Mill"))
	changed := strings.ReplaceAll(smallPlan, `"x":1`, `"x":2`)
	second := imported(t, w, drawn(t, changed, "Old Mill"))
	in := drawn(t, smallPlan, "")
	in.Plan = &first.Plan
	third := imported(t, w, in) // as the first, and not as the newest
	other := imported(t, w, drawn(t, smallPlan, "New Mill"))
	named := drawn(t, smallPlan, "Old Mill")
	named.Name = "Attic"
	attic := imported(t, w, named)
	if second.Plan != first.Plan || second.Number != 2 || third.Plan != first.Plan || third.Number != 3 || other.Plan == first.Plan || attic.Plan == first.Plan || attic.Number != 1 {
		t.Errorf("%+v\n%+v\n%+v\n%+v\n%+v", first, second, third, other, attic)
	}
	plans, err := w.Service.Plans(ctx, w.Owner, booking.PlanPage{}, 2)
	if err != nil || len(plans) != 2 || plans[0].ID != first.Plan || len(plans[0].Versions) != 1 || plans[0].Versions[0].Number != 3 {
		t.Fatalf("plans %+v, %v", plans, err)
	}
	rest, err := w.Service.Plans(ctx, w.Owner, booking.PlanPage{AfterTime: plans[1].CreatedAt, AfterID: plans[1].ID}, 2)
	if err != nil || len(rest) != 1 || rest[0].Name != "Attic" {
		t.Errorf("the rest is %+v, %v", rest, err)
	}
	venues, err := w.Service.Venues(ctx, w.Owner, booking.VenuePage{}, 10)
	if err != nil || len(venues) != 2 || venues[0].Name != "Old Mill" {
		t.Errorf("venues %+v, %v", venues, err)
	}
}

func TestAPlanWithErrorsIsADraftAndNotPublished(t *testing.T) {
	ctx, w := setup(t)
	made := imported(t, w, drawn(t, strings.Replace(smallPlan, `"number":"2"`, `"number":"1"`, 1), "Old Mill"))
	if made.Status != booking.PlanDraft || made.Errors != 1 {
		t.Errorf("made %+v", made)
	}
	_, err := w.Service.PublishPlan(ctx, w.Owner, made.Plan, 1)
	wantErr(t, err, booking.ErrPlanHasErrors)
	_, err = w.Service.PublishPlan(ctx, w.Owner, made.Plan, 2)
	wantErr(t, err, booking.ErrNotFound)
}

// A value of a wrong type is kept as if it were 0: the file that has the 0 is the same document, and no draft.
func TestAFileThatComesRightIsAVersionWhateverItsDocument(t *testing.T) {
	_, w := setup(t)
	draft := imported(t, w, drawn(t, strings.Replace(smallPlan, `"y":0`, `"y":"low"`, 1), "Old Mill"))
	right := imported(t, w, drawn(t, smallPlan, "Old Mill"))
	if !bytes.Equal(draft.Digest, right.Digest) || draft.Status != booking.PlanDraft || right.Number != 2 || right.Status != booking.PlanValidated {
		t.Errorf("%+v\n%+v", draft, right)
	}
}

func TestAFileThatIsNoPlanIsRefusedWithItsReport(t *testing.T) {
	ctx, w := setup(t)
	_, _, err := w.Service.ImportPlan(ctx, w.Owner, Key(), drawn(t, smallPlan[:90], "Old Mill"))
	refusal, ok := errors.AsType[*booking.PlanError](err)
	if !ok || refusal.Report.Count(plan.NotReadable) != 1 {
		t.Errorf("got %v", err)
	}
	for name, change := range map[string]func(*booking.PlanImport){
		"no name at all":     func(in *booking.PlanImport) { in.Venue, in.Document.Name = "", "" },
		"blank venue":        func(in *booking.PlanImport) { in.Venue = " \u200b" },
		"direction":          func(in *booking.PlanImport) { in.Venue = "a\u202eb" },
		"broken text":        func(in *booking.PlanImport) { in.Name = "\xff" },
		"long name":          func(in *booking.PlanImport) { in.Name = strings.Repeat("x", 201) },
		"venue of a plan":    func(in *booking.PlanImport) { in.Plan = new(booking.PlanID) },
		"name in the file":   func(in *booking.PlanImport) { in.Document.Name = "a\x00b" },
		"nothing but blanks": func(in *booking.PlanImport) { in.Name = "  " },
	} {
		in := drawn(t, smallPlan, "Old Mill")
		change(&in)
		_, _, err := w.Service.ImportPlan(ctx, w.Owner, Key(), in)
		if _, ok := errors.AsType[*booking.InvalidError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if venues, err := w.Service.Venues(ctx, w.Owner, booking.VenuePage{}, 10); err != nil || len(venues) != 0 {
		t.Errorf("refused imports left %+v, %v", venues, err)
	}
}

func TestPlansAreTheirOrganizersAlone(t *testing.T) {
	ctx, w := setup(t)
	made := imported(t, w, drawn(t, smallPlan, "Old Mill"))
	stranger := booking.Caller{Kind: booking.Organizer, ID: w.Owner.ID, Organizer: Organizer(t, w.Pool)}
	partner, limited := w.Owner, w.Owner
	partner.Kind, limited.Events = booking.Partner, append(limited.Events, w.Event)
	in := drawn(t, smallPlan, "")
	in.Plan = &made.Plan
	ask := map[string]func(booking.Caller) error{
		"import":  func(c booking.Caller) error { _, _, err := w.Service.ImportPlan(ctx, c, Key(), in); return err },
		"publish": func(c booking.Caller) error { _, err := w.Service.PublishPlan(ctx, c, made.Plan, 1); return err },
		"plan":    func(c booking.Caller) error { _, err := w.Service.Plan(ctx, c, made.Plan); return err },
		"version": func(c booking.Caller) error { _, err := w.Service.PlanVersion(ctx, c, made.Plan, 1); return err },
		"file":    func(c booking.Caller) error { _, err := w.Service.PlanDocument(ctx, c, made.Plan, 1); return err },
	}
	for name, do := range ask {
		if err := do(stranger); !errors.Is(err, booking.ErrNotFound) {
			t.Errorf("%s for another organizer: %v", name, err)
		}
	}
	ask["plans"] = func(c booking.Caller) error { _, err := w.Service.Plans(ctx, c, booking.PlanPage{}, 1); return err }
	ask["venues"] = func(c booking.Caller) error { _, err := w.Service.Venues(ctx, c, booking.VenuePage{}, 1); return err }
	for name, do := range ask {
		for _, c := range []booking.Caller{Buyer(), partner, limited} {
			if err := do(c); !errors.Is(err, booking.ErrForbidden) {
				t.Errorf("%s for %+v: %v", name, c, err)
			}
		}
	}
	if plans, err := w.Service.Plans(ctx, stranger, booking.PlanPage{}, 10); err != nil || len(plans) != 0 {
		t.Errorf("another organizer's list has %+v, %v", plans, err)
	}
}

// Whoever imports the same at the same time makes one plan of one version; under one key it is one import.
func TestImportsAtTheSameTimeMakeOnePlan(t *testing.T) {
	ctx, w := setup(t)
	in, one := drawn(t, smallPlan, "Old Mill"), Key()
	var wg sync.WaitGroup
	made := make([]booking.PlanVersion, 8)
	for i := range made {
		key := one
		if i%2 == 0 {
			key = Key()
		}
		wg.Go(func() {
			var err error
			for made[i], _, err = w.Service.ImportPlan(ctx, w.Owner, key, in); errors.Is(err, booking.ErrBusy); {
				made[i], _, err = w.Service.ImportPlan(ctx, w.Owner, key, in)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, v := range made {
		if v.Plan != made[0].Plan || v.Number != 1 {
			t.Errorf("%+v and %+v", v, made[0])
		}
	}
	again, replayed, err := w.Service.ImportPlan(ctx, w.Owner, one, in)
	if err != nil || !replayed || again.Plan != made[0].Plan {
		t.Errorf("the key again gives %+v, %v, %v", again, replayed, err)
	}
}

func BenchmarkImportPlan50k(b *testing.B) {
	w := New(b, dbtest.Pool(b), booking.DefaultLimits)
	house := plan.House{Categories: []plan.HouseCategory{{Name: "A"}}, Sections: []plan.HouseSection{{Name: "Bowl"}}}
	for i := range 500 {
		house.Sections[0].Rows = append(house.Sections[0].Rows, plan.HouseRow{Label: strings.Repeat("x", i/26+1) + string(rune('A'+i%26)), Category: "A", Seats: 100})
	}
	var file bytes.Buffer
	if err := house.Plan().Export(&file); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		document, report, err := plan.Import(b.Context(), bytes.NewReader(file.Bytes()), plan.Options{})
		if err != nil {
			b.Fatal(err)
		}
		in := booking.PlanImport{Venue: Key().Key, Document: document, Report: report}
		if made, _, err := w.Service.ImportPlan(context.Background(), w.Owner, Key(), in); err != nil || made.Status != booking.PlanValidated {
			b.Fatal(made.Status, err)
		}
	}
}
