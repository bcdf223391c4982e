package booking_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/seats"
)

func TestChannelIsMadeOnceOrNotAtAll(t *testing.T) {
	ctx, w := setup(t)
	key, wish := Key(), booking.NewChannel{Name: "agency", Seats: []seats.ID{1}}
	first, replayed, err := w.Service.CreateChannel(ctx, w.Owner, key, w.Event, wish)
	if err != nil || replayed {
		t.Fatalf("%+v, replayed %v, %v", first, replayed, err)
	}
	again, replayed, err := w.Service.CreateChannel(ctx, w.Owner, key, w.Event, wish)
	if err != nil || !replayed || again.ID != first.ID || again.Total != 1 {
		t.Errorf("the same request again: %+v, replayed %v, %v", again, replayed, err)
	}
	full := booking.NewChannel{Name: "floor", Seats: []seats.ID{2}, Places: &booking.AreaPlaces{Area: Floor, Quantity: FloorSize + 1}}
	_, _, err = w.Service.CreateChannel(ctx, w.Owner, Key(), w.Event, full)
	wantErr(t, err, booking.ErrSoldOut)
	full.Places = &booking.AreaPlaces{Area: Floor + 1, Quantity: 1}
	_, _, err = w.Service.CreateChannel(ctx, w.Owner, Key(), w.Event, full)
	wantErr(t, err, booking.ErrNotFound)
	name := "renamed"
	_, err = w.Service.UpdateChannel(ctx, w.Owner, w.Event, first.ID, booking.ChannelChange{Name: &name, Add: []seats.ID{2, 999}})
	refused(t, err, booking.CodeSeatUnknown)
	list, err := w.Service.Channels(ctx, w.Owner, w.Event)
	if err != nil || len(list) != 1 || list[0].Name != "agency" || list[0].Total != 1 {
		t.Errorf("after refusals: %+v, %v", list, err)
	}
	w.MustHold(t, Buyer(), 2)
}

func TestAllotmentNamesTheSeatsThatStandInItsWayAlone(t *testing.T) {
	ctx, w := setup(t)
	made := channel(t, w, nil)
	w.MustHold(t, Buyer(), 10)
	_, err := w.Service.UpdateChannel(ctx, w.Owner, w.Event, made.ID, booking.ChannelChange{Add: []seats.ID{3, 9, 10}}) // 3 is in it already
	if lost := refused(t, err, booking.CodeSeatTaken).Seats; len(lost) != 1 || lost[0].ID != 10 || lost[0].Reason != booking.ReasonHeld {
		t.Errorf("named %+v, want seat 10 alone", lost)
	}
}

func TestChannelsHaveBounds(t *testing.T) {
	ctx, w := setup(t)
	named := func(i int) booking.NewChannel { return booking.NewChannel{Name: fmt.Sprintf("channel %d", i)} }
	create := func(made booking.NewChannel) error {
		_, _, err := w.Service.CreateChannel(ctx, w.Owner, Key(), w.Event, made)
		return err
	}
	for i := range 100 {
		if err := create(named(i)); err != nil {
			t.Fatal(err)
		}
	}
	wantInvalid(t, create(named(100)), "", "too_many_channels")
	if err := w.Service.DeleteChannel(ctx, w.Owner, w.Event, 50); err != nil {
		t.Fatal(err)
	}
	if err := create(named(100)); err != nil {
		t.Errorf("99 channels, and one more: %v", err)
	}
	many := make([]seats.ID, 5001)
	for i := range many {
		many[i] = seats.ID(i + 1)
	}
	wantInvalid(t, create(booking.NewChannel{Name: "x", Seats: many}), "/seats", "too_many_seats")
	wantInvalid(t, create(booking.NewChannel{Name: "x", Keys: make([]uuid.UUID, 21)}), "/keys", "bad_count")
	wantInvalid(t, create(booking.NewChannel{Name: "x", Places: &booking.AreaPlaces{Area: Floor, Quantity: 5001}}), "/ga/quantity", "bad_quantity")
	_, err := w.Service.UpdateChannel(ctx, w.Owner, w.Event, 1, booking.ChannelChange{Add: many})
	wantInvalid(t, err, "/add", "too_many_seats")
}

func TestChannelHasLivePartnerKeysOfItsOrganizerAlone(t *testing.T) {
	ctx, w := setup(t)
	good, revoked, own, foreign := partner(t, w), partner(t, w), partner(t, w), partner(t, w)
	for statement, arg := range map[string]any{
		"UPDATE api_keys SET revoked_at = statement_timestamp() WHERE id = $1": revoked.ID,
		"UPDATE api_keys SET scope = 'organizer' WHERE id = $1":                own.ID,
	} {
		if _, err := w.Pool.Exec(ctx, statement, arg); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Pool.Exec(ctx, "UPDATE api_keys SET organizer_id = $2 WHERE id = $1", foreign.ID, Organizer(t, w.Pool)); err != nil {
		t.Fatal(err)
	}
	made := channel(t, w, nil, good.ID)
	for name, id := range map[string]uuid.UUID{"revoked": revoked.ID, "the organizer's": own.ID, "foreign": foreign.ID, "twice": good.ID, "unknown": uuid.New()} {
		t.Run(name, func(t *testing.T) {
			_, err := w.Service.UpdateChannel(ctx, w.Owner, w.Event, made.ID, booking.ChannelChange{Keys: &[]uuid.UUID{good.ID, id}})
			wantInvalid(t, err, "/keys/1", "unknown_key")
		})
	}
	if !mayTake(t, w, good, 2) {
		t.Error("refused changes took the key away")
	}
}

func TestChannelsAreTheOrganizersOwn(t *testing.T) {
	ctx, w := setup(t)
	made := channel(t, w, nil)
	stranger := booking.Caller{Kind: booking.Organizer, ID: uuid.New(), Organizer: Organizer(t, w.Pool)}
	elsewhere := w.Owner
	elsewhere.Events = []seats.EventID{w.Event + 1}
	for name, use := range map[string]func(booking.Caller) error{
		"create": func(c booking.Caller) error {
			_, _, err := w.Service.CreateChannel(ctx, c, Key(), w.Event, booking.NewChannel{Name: "mine", Seats: []seats.ID{20}})
			return err
		},
		"update": func(c booking.Caller) error {
			return second(w.Service.UpdateChannel(ctx, c, w.Event, made.ID, booking.ChannelChange{Add: []seats.ID{20}}))
		},
		"delete": func(c booking.Caller) error { return w.Service.DeleteChannel(ctx, c, w.Event, made.ID) },
		"list":   func(c booking.Caller) error { return second(w.Service.Channels(ctx, c, w.Event)) },
		"read":   func(c booking.Caller) error { _, _, err := w.Service.Channel(ctx, c, w.Event, made.ID); return err },
	} {
		for who, c := range map[string]struct {
			caller booking.Caller
			want   error
		}{
			"buyer": {Buyer(), booking.ErrForbidden}, "partner": {partner(t, w), booking.ErrForbidden},
			"another organizer": {stranger, booking.ErrNotFound}, "staff of other events": {elsewhere, booking.ErrNotFound},
		} {
			if err := use(c.caller); !errors.Is(err, c.want) {
				t.Errorf("%s by %s: %v, want %v", name, who, err, c.want)
			}
		}
	}
	cancelled := booking.StatusCancelled
	if _, err := w.Service.UpdateEvent(ctx, w.Owner, w.Event, booking.EventChange{Status: &cancelled}); err != nil {
		t.Fatal(err)
	}
	_, err := w.Service.UpdateChannel(ctx, w.Owner, w.Event, made.ID, booking.ChannelChange{Add: []seats.ID{20}})
	wantErr(t, err, booking.ErrEventCancelled)
}
