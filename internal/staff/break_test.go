package staff_test

import (
	"fmt"
	"sync"
	"testing"

	"seatfence/internal/staff"
)

// The right password that had to wait for its turn to be hashed is no wrong one.
func TestARightPasswordThatFoundNoTurnCostsNothing(t *testing.T) {
	o := open(t)
	u, _ := o.hired(staff.Owner, "lena@example.com")
	stop := make(chan struct{})
	var all sync.WaitGroup
	for g := range 400 {
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				_, _, _ = o.SignIn(t.Context(), fmt.Sprintf("nobody-%d-%d@example.com", g, i), password)
			}
		})
	}
	for range 8 {
		_, _, _ = o.SignIn(t.Context(), u.Email, password)
	}
	failures := o.count("SELECT failures FROM users WHERE email = $1", u.Email)
	close(stop)
	all.Wait()
	if failures > 0 {
		t.Errorf("a user who only typed the right password has %d failures", failures)
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
