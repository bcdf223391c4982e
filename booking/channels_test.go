package booking_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/seats"
)

// partner is a caller with an API key that sells for the World's owner.
func partner(t *testing.T, w World) booking.Caller {
	t.Helper()
	caller := booking.Caller{Kind: booking.Partner, ID: uuid.New(), Organizer: w.Owner.Organizer}
	_, err := w.Pool.Exec(t.Context(), "INSERT INTO api_keys (id, organizer_id, name, scope, secret_hash) VALUES ($1, $2, 'agency', 'partner', '\\x00')",
		caller.ID, caller.Organizer)
	if err != nil {
		t.Fatal(err)
	}
	return caller
}

// channel allots seats 1 to 5 and two places of the floor to an agency.
func channel(t *testing.T, w World, release *time.Duration, keys ...uuid.UUID) booking.Channel {
	t.Helper()
	made, _, err := w.Service.CreateChannel(t.Context(), w.Owner, Key(), w.Event, booking.NewChannel{
		Name: "agency", ReleaseBefore: release, Keys: keys, Seats: []seats.ID{1, 2, 3, 4, 5}, Places: &booking.AreaPlaces{Area: Floor, Quantity: 2},
	})
	if err != nil || made.Total != 7 || made.Free != 7 {
		t.Fatalf("%+v, %v", made, err)
	}
	return made
}

// mayTake tries every way of taking a seat: by name, directly, in a list of two, and as the best of its row. The seats are given back.
func mayTake(t *testing.T, w World, caller booking.Caller, id seats.ID) bool {
	t.Helper()
	ctx := t.Context()
	ways := map[string]func() error{
		"hold": func() error {
			hold, err := w.Hold(ctx, caller, id)
			if err == nil {
				err = w.Service.Release(ctx, caller, hold.ID)
			}
			return err
		},
		"hold of two": func() error {
			hold, err := w.Hold(ctx, caller, id, id+1)
			if err == nil {
				err = w.Service.Release(ctx, caller, hold.ID)
			}
			return err
		},
		"sale": func() error {
			made, err := w.Book(ctx, caller, id)
			if err == nil {
				_, err = w.Service.Cancel(ctx, caller, made.ID)
			}
			return err
		},
		"sale of two": func() error {
			made, err := w.Book(ctx, caller, id, id+1)
			if err == nil {
				_, err = w.Service.Cancel(ctx, caller, made.ID)
			}
			return err
		},
	}
	took := 0
	for name, take := range ways {
		err := take()
		refusal, ok := errors.AsType[*booking.SeatsError](err)
		switch {
		case err == nil:
			took++
		case !ok || refusal.Code != booking.CodeSeatTaken || refusal.Seats[0].Reason != booking.ReasonBlocked:
			t.Errorf("%s of seat %d: %v", name, id, err)
		}
	}
	if took != 0 && took != len(ways) {
		t.Errorf("seat %d was given by %d of %d ways", id, took, len(ways))
	}
	return took > 0
}

func TestKeySellsItsChannelsAndNothingElse(t *testing.T) {
	ctx, w := setup(t)
	agency, other := partner(t, w), partner(t, w)
	made := channel(t, w, nil, agency.ID)
	for _, c := range []struct {
		name          string
		caller        booking.Caller
		inside, aside bool
	}{
		{"agency", agency, true, false}, {"another partner", other, false, true}, {"buyer", Buyer(), false, true}, {"organizer", w.Owner, true, true},
	} {
		if got := mayTake(t, w, c.caller, 2); got != c.inside {
			t.Errorf("%s takes a seat of the channel: %v", c.name, got)
		}
		if got := mayTake(t, w, c.caller, 20+2); got != c.aside {
			t.Errorf("%s takes a seat of no channel: %v", c.name, got)
		}
		seat, err := w.Service.Seat(ctx, c.caller, w.Event, 2)
		if free := seat.State == seats.Free; err != nil || free != c.inside || !free && seat.State != seats.Blocked {
			t.Errorf("%s sees %+v, %v", c.name, seat, err)
		}
	}
	hold, err := best(ctx, w, agency, booking.BestWish{Quantity: 5})
	if err != nil || !slices.Equal(idsOf(hold), []seats.ID{1, 2, 3, 4, 5}) {
		t.Errorf("the agency's best are %v, %v", idsOf(hold), err)
	}
	_, err = best(ctx, w, agency, booking.BestWish{Quantity: 1})
	wantErr(t, err, booking.ErrNoBlock)
	open, err := best(ctx, w, Buyer(), booking.BestWish{Quantity: 20})
	if err != nil || slices.ContainsFunc(idsOf(open), func(id seats.ID) bool { return id <= 5 }) {
		t.Errorf("the best of everybody else are %v, %v", idsOf(open), err)
	}
	places := func(caller booking.Caller, n int) error {
		_, _, err := w.Service.Hold(ctx, caller, Key(), booking.HoldRequest{Event: w.Event, Places: &booking.AreaPlaces{Area: Floor, Quantity: n}})
		return err
	}
	wantErr(t, places(agency, 3), booking.ErrSoldOut)
	if err := places(agency, 2); err != nil {
		t.Error(err)
	}
	wantErr(t, places(other, 20), nil)
	wantErr(t, places(other, 9), booking.ErrSoldOut)
	own, err := best(ctx, w, w.Owner, booking.BestWish{Quantity: 20})
	if err != nil || slices.ContainsFunc(idsOf(own), func(id seats.ID) bool { return id <= 5 }) {
		t.Errorf("the organizer's best are %v, %v: what is somebody's has to be named", idsOf(own), err)
	}
	wantErr(t, places(w.Owner, 9), booking.ErrSoldOut)
	list, err := w.Service.Channels(ctx, w.Owner, w.Event)
	if err != nil || len(list) != 1 || list[0].ID != made.ID || list[0].Held != 7 || list[0].Keys[0] != agency.ID {
		t.Errorf("channels %+v, %v", list, err)
	}
}

func TestChannelWithoutKeysIsTheBoxOffice(t *testing.T) {
	ctx, w := setup(t)
	channel(t, w, nil)
	_, err := w.Hold(ctx, Buyer(), 1)
	refused(t, err, booking.CodeSeatTaken)
	_, err = w.Hold(ctx, partner(t, w), 1)
	refused(t, err, booking.CodeSeatTaken)
	if hold, err := best(ctx, w, w.Owner, booking.BestWish{Quantity: 20}); err != nil || idsOf(hold)[0] != 1 {
		t.Errorf("the organizer's best are %v, %v", idsOf(hold), err)
	}
	for range 30 {
		if _, err := bookPlaces(t, w, 1); err != nil {
			wantErr(t, err, booking.ErrSoldOut)
		}
	}
	for _, n := range []int{1, 1} {
		req := w.Request()
		req.Seats, req.Places = nil, &booking.AreaPlaces{Area: Floor, Quantity: n}
		if _, _, err := w.Service.Book(ctx, w.Owner, Key(), req); err != nil {
			t.Errorf("the last places are the organizer's: %v", err)
		}
	}
}

func TestChannelReleasesItselfBeforeTheEvent(t *testing.T) {
	ctx, w := setup(t)
	agency := partner(t, w)
	day := 24 * time.Hour
	made := channel(t, w, &day, agency.ID)
	_, err := w.Hold(ctx, Buyer(), 1)
	refused(t, err, booking.CodeSeatTaken)
	kept, err := w.Hold(ctx, agency, 3)
	if err != nil {
		t.Fatal(err)
	}
	soon := time.Now().Add(day - time.Minute)
	if _, err := w.Service.UpdateEvent(ctx, w.Owner, w.Event, booking.EventChange{StartsAt: &soon}); err != nil {
		t.Fatal(err)
	}
	w.MustHold(t, Buyer(), 1)
	if hold, err := best(ctx, w, Buyer(), booking.BestWish{Quantity: 1, Section: "Stalls"}); err != nil {
		t.Errorf("%+v, %v", hold, err)
	}
	if _, err := w.Confirm(ctx, agency, kept.ID); err != nil {
		t.Errorf("what the agency held: %v", err)
	}
	now, ids, err := w.Service.Channel(ctx, w.Owner, w.Event, made.ID)
	if err != nil || !now.Released || now.Booked != 1 || len(ids) != 7 {
		t.Errorf("%+v, %v, %v", now, ids, err)
	}
}

func TestSeatsThatSomebodyHasAreNotAllotted(t *testing.T) {
	ctx, w := setup(t)
	channel(t, w, nil)
	w.MustHold(t, Buyer(), 10)
	if _, err := w.Book(ctx, Buyer(), 11); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Service.Block(ctx, w.Owner, Key(), w.Event, []seats.ID{12}, "camera"); err != nil {
		t.Fatal(err)
	}
	_, _, err := w.Service.CreateChannel(ctx, w.Owner, Key(), w.Event, booking.NewChannel{Name: "box office", Seats: []seats.ID{5, 9, 10, 11, 12}})
	reasons := map[seats.ID]string{}
	for _, l := range refused(t, err, booking.CodeSeatTaken).Seats {
		reasons[l.ID] = l.Reason
	}
	want := map[seats.ID]string{5: booking.ReasonAllotted, 10: booking.ReasonHeld, 11: booking.ReasonBooked, 12: booking.ReasonBlocked}
	for id, reason := range want {
		if reasons[id] != reason || len(reasons) != len(want) {
			t.Errorf("seats %v, want %v", reasons, want)
		}
	}
	if list, err := w.Service.Channels(ctx, w.Owner, w.Event); err != nil || len(list) != 1 {
		t.Errorf("a refused channel is there: %+v, %v", list, err)
	}
	_, _, err = w.Service.CreateChannel(ctx, w.Owner, Key(), w.Event, booking.NewChannel{Name: "agency"})
	wantInvalid(t, err, "/name", "duplicate_channel")
	_, _, err = w.Service.CreateChannel(ctx, w.Owner, Key(), w.Event, booking.NewChannel{Name: "ghost", Keys: []uuid.UUID{uuid.New()}})
	wantInvalid(t, err, "/keys/0", "unknown_key")
}

func TestChannelIsChangedAndGivenBack(t *testing.T) {
	ctx, w := setup(t)
	agency := partner(t, w)
	made := channel(t, w, nil, agency.ID)
	if _, err := best(ctx, w, agency, booking.BestWish{Quantity: 1}); err != nil { // the node knows the channel
		t.Fatal(err)
	}
	name, never := "city agency", time.Duration(0)
	changed, err := w.Service.UpdateChannel(ctx, w.Owner, w.Event, made.ID, booking.ChannelChange{
		Name: &name, ReleaseBefore: &never, Add: []seats.ID{30, 31}, Drop: []seats.ID{1, 2, 3, 4, 5},
	})
	if err != nil || changed.Name != name || changed.Total != 4 || changed.ReleasesAt != nil {
		t.Fatalf("%+v, %v", changed, err)
	}
	hold, err := best(ctx, w, agency, booking.BestWish{Quantity: 2})
	if err != nil || !slices.Equal(idsOf(hold), []seats.ID{30, 31}) {
		t.Errorf("%v, %v", idsOf(hold), err)
	}
	_, err = w.Service.UpdateChannel(ctx, w.Owner, w.Event, made.ID, booking.ChannelChange{Drop: []seats.ID{1}})
	wantInvalid(t, err, "/drop", "not_in_channel")
	if err := w.Service.DeleteChannel(ctx, w.Owner, w.Event, made.ID); err != nil {
		t.Fatal(err)
	}
	wantErr(t, w.Service.DeleteChannel(ctx, w.Owner, w.Event, made.ID), booking.ErrNotFound)
	if _, err := w.Confirm(ctx, agency, hold.ID); err != nil {
		t.Errorf("what the agency held: %v", err)
	}
	w.MustHold(t, agency, 20) // it has no channel any more, and so sells with everybody
}
