package staff_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/internal/staff"
	"seatfence/seats"
)

func TestANewRoleIsSeenInTime(t *testing.T) {
	o := open(t)
	o.hired(staff.Owner, "omar@example.com")
	u, secret := o.hired(staff.Editor, "lena@example.com")
	if _, err := o.Lookup(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	role := staff.Door
	changed, err := o.Change(t.Context(), staff.ActorOf(o.Owner), u.Organizer, u.ID, staff.Change{Role: &role, Events: []seats.EventID{o.Event}})
	if err != nil || changed.Role != staff.Door || changed.EveryEvent {
		t.Fatalf("%+v, %v", changed, err)
	}
	got, err := o.Lookup(t.Context(), secret)
	if err != nil || got.User.Role != staff.Door || len(got.User.Caller().Events) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestTheLastOwnerStays(t *testing.T) {
	o := open(t)
	u, _ := o.hired(staff.Owner, "lena@example.com")
	by, door := staff.ActorOf(o.Owner), staff.Door
	want(t, "removed", o.Remove(t.Context(), by, u.Organizer, u.ID), staff.ErrLastOwner)
	_, err := o.Change(t.Context(), by, u.Organizer, u.ID, staff.Change{Role: &door})
	want(t, "demoted", err, staff.ErrLastOwner)

	other, _ := o.hired(staff.Owner, "omar@example.com")
	refused := make(chan error, 2)
	var both sync.WaitGroup
	for _, id := range []uuid.UUID{u.ID, other.ID} { // each removes the other
		both.Go(func() { refused <- o.Remove(t.Context(), by, u.Organizer, id) })
	}
	both.Wait()
	if n := o.count("SELECT count(*) FROM people WHERE role = 'owner'"); n != 1 {
		t.Errorf("%d owners are left: %v, %v", n, <-refused, <-refused)
	}
}

// An owner who has never set a password cannot be the one who is left.
func TestTheLastOwnerWhoCanSignInStays(t *testing.T) {
	o := open(t)
	u, _ := o.hired(staff.Owner, "lena@example.com")
	if _, err := o.invite(person(staff.Owner, "omar@exmaple.com")); err != nil {
		t.Fatal(err)
	}
	want(t, "remove", o.Remove(t.Context(), staff.Operator, o.Owner.Organizer, u.ID), staff.ErrLastOwner)
	door := staff.Door
	_, err := o.Change(t.Context(), staff.Operator, o.Owner.Organizer, u.ID, staff.Change{Role: &door})
	want(t, "change", err, staff.ErrLastOwner)
}

func TestUsersOfOthersAreUnknown(t *testing.T) {
	o := open(t)
	u, _ := o.hired(staff.Editor, "lena@example.com")
	foreign := Organizer(t, o.pool)
	door := staff.Door
	want(t, "removed", o.Remove(t.Context(), staff.Operator, foreign, u.ID), booking.ErrNotFound)
	_, err := o.Change(t.Context(), staff.Operator, foreign, u.ID, staff.Change{Role: &door})
	want(t, "changed", err, booking.ErrNotFound)
	_, _, err = o.Create(t.Context(), foreign, person(staff.Editor, "LENA@example.com"), false)
	want(t, "invited by another organizer", err, staff.ErrEmailTaken)
	_, _, err = o.Create(t.Context(), foreign, staff.NewUser{Email: "omar@example.com", Name: "Omar", Role: staff.Door, Events: []seats.EventID{o.Event}}, false)
	wantCode(t, "for another organizer's event", err, "unknown_event")
	if list, err := o.List(t.Context(), foreign); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestAnInvitationIsRepeatedNotDoubled(t *testing.T) {
	o := open(t)
	key := Key()
	first, replayed, err := o.Invite(t.Context(), o.Owner, key, person(staff.Editor, "lena@example.com"))
	if err != nil || replayed {
		t.Fatal(replayed, err)
	}
	again, replayed, err := o.Invite(t.Context(), o.Owner, key, person(staff.Editor, "lena@example.com"))
	if err != nil || !replayed || again.ID != first.ID {
		t.Errorf("the same key: %+v, %v, %v", again, replayed, err)
	}
	other := booking.NewIdempotency(key.Key, []byte("another request"))
	_, _, err = o.Invite(t.Context(), o.Owner, other, person(staff.Door, "lena@example.com"))
	want(t, "another request under the key", err, booking.ErrKeyReused)
	if same, err := o.invite(person(staff.Editor, "lena@example.com")); err != nil || same.ID != first.ID {
		t.Errorf("the same invitation: %+v, %v", same, err)
	}
	_, err = o.invite(person(staff.Door, "lena@example.com"))
	want(t, "for another role", err, staff.ErrEmailTaken)

	var all sync.WaitGroup
	shared := Key()
	for range 8 {
		all.Go(func() {
			if _, _, err := o.Invite(context.Background(), o.Owner, shared, person(staff.Door, "omar@example.com")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := o.count("SELECT count(*) FROM users"); n != 2 {
		t.Errorf("%d users, want 2", n)
	}
}

func TestLimitsThatMakeNoSenseAreRefused(t *testing.T) {
	o := open(t)
	for code, n := range map[string]staff.NewUser{
		"bad_role":       person("admin", "lena@example.com"),
		"owner_limited":  {Email: "lena@example.com", Name: "Lena", Role: staff.Owner, Events: []seats.EventID{o.Event}},
		"events_unused":  {Email: "lena@example.com", Name: "Lena", Role: staff.Door, EveryEvent: true, Events: []seats.EventID{o.Event}},
		"events_missing": {Email: "lena@example.com", Name: "Lena", Role: staff.Door},
		"event_twice":    {Email: "lena@example.com", Name: "Lena", Role: staff.Door, Events: []seats.EventID{o.Event, o.Event}},
		"unknown_event":  {Email: "lena@example.com", Name: "Lena", Role: staff.Door, Events: []seats.EventID{1}},
		"bad_email":      person(staff.Door, "lena"),
		"name_missing":   {Email: "lena@example.com", Name: " ", Role: staff.Door, EveryEvent: true},
	} {
		_, err := o.invite(n)
		wantCode(t, code, err, code)
	}
	if n := o.count("SELECT count(*) FROM users"); n != 0 {
		t.Errorf("%d users were made", n)
	}
}

func TestIDsHaveOneForm(t *testing.T) {
	t.Parallel()
	for _, id := range []uuid.UUID{uuid.Nil, uuid.Max, uuid.New()} {
		text := staff.FormatID(id)
		if back, err := staff.ParseID(text); err != nil || back != id {
			t.Errorf("%v: %q, %v, %v", id, text, back, err)
		}
		for _, bad := range []string{"", "usr_", strings.ToUpper(text), text + "0", "bkg_" + text[4:], text[:len(text)-1] + "1"} {
			if _, err := staff.ParseID(bad); !errors.Is(err, seats.ErrBadID) && bad != text {
				t.Errorf("%q: %v", bad, err)
			}
		}
	}
}
