package staff

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"seatfence/booking"
	"seatfence/db"
	"seatfence/internal/access"
	"seatfence/seats"
)

const (
	maxUsers  = 1000 // of one organizer, so that a list is whole
	maxEvents = 200  // of one user who is not for every event
)

// NewUser is a user to be made. One who is not for every event names those that they are for.
type NewUser struct {
	Email      string
	Name       string
	Role       string
	EveryEvent bool
	Events     []seats.EventID
}

// limits is what a user may: the part of a user that can be changed, and that the log tells.
type limits struct {
	Role       string          `json:"role"`
	EveryEvent bool            `json:"every_event"`
	Events     []seats.EventID `json:"events,omitempty"`
}

func limitsOf(u User) limits { return limits{u.Role, u.EveryEvent, u.Events} }

func (l limits) equal(o limits) bool {
	return l.Role == o.Role && l.EveryEvent == o.EveryEvent && slices.Equal(l.Events, o.Events)
}

// check also brings the events in order.
func (l *limits) check() error {
	slices.Sort(l.Events)
	switch {
	case !slices.Contains(Roles, l.Role):
		return invalid("/role", "bad_role", "a role is owner, editor, box_office or door")
	case l.Role == Owner && !l.EveryEvent:
		return invalid("/every_event", "owner_limited", "an owner is for every event")
	case l.EveryEvent && len(l.Events) > 0:
		return invalid("/events", "events_unused", "a user for every event names none")
	case !l.EveryEvent && len(l.Events) == 0:
		return invalid("/events", "events_missing", "a user who is not for every event names those that they are for")
	case len(l.Events) > maxEvents:
		return invalid("/events", "too_many_events", "a user names at most %d events", maxEvents)
	case len(slices.Compact(slices.Clone(l.Events))) < len(l.Events):
		return invalid("/events", "event_twice", "an event is named twice")
	}
	return nil
}

// Organizer returns the id of the organizer of a name, which is made if there is none.
func (s *Staff) Organizer(ctx context.Context, name string) (id int64, err error) {
	if name == "" {
		return 0, invalid("/organizer", "organizer_missing", "the name of an organizer is needed")
	}
	err = db.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		id, err = access.EnsureOrganizer(ctx, tx, name)
		return err
	})
	return id, answer("find organizer", err)
}

// Invite makes a user and has them mailed an invitation, once under a key. Somebody who is a user with the same limits already is
// returned, and mailed again as long as they have no password; anybody else's address is ErrEmailTaken.
func (s *Staff) Invite(ctx context.Context, caller booking.Caller, key booking.Idempotency, n NewUser) (u User, replayed bool, err error) {
	if u, replayed, err = s.recall(ctx, caller, key); err != nil || replayed {
		return u, replayed, err
	}
	err = db.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if u, err = s.create(ctx, tx, ActorOf(caller), caller.Organizer, n); err != nil {
			return err
		}
		if err := s.mail(ctx, tx, u, Invitation); err != nil {
			return err
		}
		result, err := json.Marshal(u)
		if err != nil {
			return fmt.Errorf("encode result: %w", err)
		}
		return queries.KeyInsert(ctx, tx, db.KeyInsertParams{Caller: caller.ID, Key: key.Key, Fingerprint: key.Fingerprint, Result: result})
	})
	if db.Violates(err, db.ConstraintKey) { // its twin was faster
		return s.recall(ctx, caller, key)
	}
	if err != nil {
		return User{}, false, answer("invite user", err)
	}
	return u, false, nil
}

// recall returns the user that an earlier success under the key has made.
func (s *Staff) recall(ctx context.Context, caller booking.Caller, key booking.Idempotency) (u User, known bool, err error) {
	row, err := queries.KeyGet(ctx, s.pool, db.KeyGetParams{Caller: caller.ID, Key: key.Key})
	switch {
	case db.NotFound(err):
		return u, false, nil
	case err != nil:
		return u, false, answer("look up idempotency key", err)
	case string(row.Fingerprint) != string(key.Fingerprint):
		return u, false, booking.ErrKeyReused
	}
	if err := json.Unmarshal(row.Result, &u); err != nil {
		return u, false, fmt.Errorf("decode stored result: %w", err)
	}
	return u, true, nil
}

// Create is Invite for an operator. With link it mails nothing and returns the link of the invitation instead.
func (s *Staff) Create(ctx context.Context, organizer int64, n NewUser, link bool) (u User, url string, err error) {
	err = db.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if u, err = s.create(ctx, tx, Operator, organizer, n); err != nil {
			return err
		}
		switch {
		case !link:
			return s.mail(ctx, tx, u, Invitation)
		case u.Active:
			return nil
		}
		letter, err := s.letter(ctx, tx, u, Invitation)
		url = letter.Link
		return err
	})
	if err != nil {
		return User{}, "", answer("create user", err)
	}
	return u, url, nil
}

func (s *Staff) create(ctx context.Context, tx pgx.Tx, by Actor, organizer int64, n NewUser) (u User, err error) {
	if n.Email, err = booking.CleanEmail(n.Email); err != nil {
		return u, at("/email", err)
	}
	if n.Name, err = booking.CleanName(n.Name); err != nil {
		return u, at("/name", err)
	}
	wanted := limits{n.Role, n.EveryEvent, n.Events}
	if err := wanted.check(); err != nil {
		return u, err
	}
	count, err := locked(ctx, tx, organizer)
	if err != nil {
		return u, err
	}
	there, err := queries.PersonByEmail(ctx, tx, n.Email)
	if err == nil {
		if u = userOf(there); u.Organizer != organizer || !wanted.equal(limitsOf(u)) {
			return User{}, ErrEmailTaken
		}
		return u, nil
	}
	if !db.NotFound(err) {
		return u, err
	}
	if count.People >= maxUsers {
		return u, invalid("", "too_many_users", "an organizer has at most %d users", maxUsers)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return u, err
	}
	if err := queries.UserInsert(ctx, tx, db.UserInsertParams{
		ID: id, OrganizerID: organizer, Email: n.Email, Name: n.Name, Role: n.Role, EveryEvent: n.EveryEvent,
	}); err != nil {
		return u, err
	}
	if err := nameEvents(ctx, tx, id, organizer, wanted.Events); err != nil {
		return u, err
	}
	if err := record(ctx, tx, organizer, by, "user.created", id, wanted); err != nil {
		return u, err
	}
	made, err := queries.PersonGet(ctx, tx, id)
	return userOf(made), err
}

// locked makes changes of an organizer's users take turns, and counts those users.
func locked(ctx context.Context, tx pgx.Tx, organizer int64) (db.PeopleCountRow, error) {
	if _, err := queries.OrganizerLock(ctx, tx, organizer); err != nil {
		return db.PeopleCountRow{}, err
	}
	return queries.PeopleCount(ctx, tx, organizer)
}

// nameEvents notes the events of a user. Those of other organizers are unknown.
func nameEvents(ctx context.Context, tx pgx.Tx, user uuid.UUID, organizer int64, events []seats.EventID) error {
	if len(events) == 0 {
		return nil
	}
	ids := make([]int64, len(events))
	for i, id := range events {
		ids[i] = int64(id)
	}
	n, err := queries.UserEventsAdd(ctx, tx, db.UserEventsAddParams{UserID: user, Events: ids, OrganizerID: organizer})
	if err == nil && n < int64(len(ids)) {
		err = invalid("/events", "unknown_event", "an event is unknown")
	}
	return err
}

// List returns the users of an organizer, oldest first.
func (s *Staff) List(ctx context.Context, organizer int64) ([]User, error) {
	rows, err := queries.PeopleOf(ctx, s.pool, db.PeopleOfParams{OrganizerID: organizer, MaxRows: maxUsers})
	return usersOf(rows), answer("list users", err)
}

// Everybody returns the users of all organizers, for an operator.
func (s *Staff) Everybody(ctx context.Context) ([]User, error) {
	rows, err := queries.PeopleAll(ctx, s.pool)
	return usersOf(rows), answer("list users", err)
}

func usersOf(rows []db.Person) []User {
	list := make([]User, len(rows))
	for i, r := range rows {
		list[i] = userOf(r)
	}
	return list
}

// Change says what of a user's limits to change; nil leaves a field as it is. Events alone make a user one for those events.
type Change struct {
	Role       *string
	EveryEvent *bool
	Events     []seats.EventID
}

func (c Change) of(l limits) limits {
	if c.Role != nil {
		l.Role = *c.Role
	}
	if c.Events != nil {
		l.Events, l.EveryEvent = c.Events, false
	}
	if c.EveryEvent != nil {
		l.EveryEvent = *c.EveryEvent
		if l.EveryEvent && c.Events == nil {
			l.Events = nil
		}
	}
	return l
}

// Change changes what a user may. Other nodes go by it some seconds later.
func (s *Staff) Change(ctx context.Context, by Actor, organizer int64, id uuid.UUID, change Change) (u User, err error) {
	err = s.alter(ctx, organizer, id, func(tx pgx.Tx, old User, lastOwner bool) error {
		was := limitsOf(old)
		now := change.of(was)
		if err := now.check(); err != nil {
			return err
		}
		u = old
		switch {
		case now.equal(was):
			return nil
		case lastOwner && now.Role != Owner:
			return ErrLastOwner
		}
		if err := queries.UserLimit(ctx, tx, db.UserLimitParams{ID: id, Role: now.Role, EveryEvent: now.EveryEvent}); err != nil {
			return err
		}
		if err := queries.UserEventsClear(ctx, tx, id); err != nil {
			return err
		}
		if err := nameEvents(ctx, tx, id, organizer, now.Events); err != nil {
			return err
		}
		u.Role, u.EveryEvent, u.Events = now.Role, now.EveryEvent, now.Events
		return record(ctx, tx, organizer, by, "user.changed", id, map[string]limits{"from": was, "to": now})
	})
	return u, err
}

// Remove ends a user and their sessions; other nodes accept those for some seconds more.
func (s *Staff) Remove(ctx context.Context, by Actor, organizer int64, id uuid.UUID) error {
	return s.alter(ctx, organizer, id, func(tx pgx.Tx, u User, lastOwner bool) error {
		if lastOwner {
			return ErrLastOwner
		}
		for _, end := range []func(context.Context, db.DBTX, uuid.UUID) error{queries.TokensEnd, queries.UserRemove, queries.SessionsEnd} {
			if err := end(ctx, tx, id); err != nil { // in the order in which SetPassword meets them
				return err
			}
		}
		return record(ctx, tx, organizer, by, "user.removed", id, limitsOf(u))
	})
}

// RemoveAny is Remove for an operator, who need not name the organizer.
func (s *Staff) RemoveAny(ctx context.Context, id uuid.UUID) error {
	p, err := queries.PersonGet(ctx, s.pool, id)
	if err != nil {
		return answer("read user", err)
	}
	return s.Remove(ctx, Operator, p.OrganizerID, id)
}

// alter runs fn in a transaction on a user of the organizer, and has this node forget what it knew of them.
func (s *Staff) alter(ctx context.Context, organizer int64, id uuid.UUID, fn func(tx pgx.Tx, u User, lastOwner bool) error) error {
	err := db.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		count, err := locked(ctx, tx, organizer)
		if err != nil {
			return err
		}
		p, err := queries.PersonOf(ctx, tx, db.PersonOfParams{ID: id, OrganizerID: organizer})
		if err != nil {
			return err
		}
		last := count.Owners == 1 || p.PasswordHash != nil && count.ActiveOwners == 1 // who was only invited may never come
		return fn(tx, userOf(p), p.Role == Owner && last)
	})
	s.forget(id)
	return answer("change user", err)
}
