package booking

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/seats"
)

// Channel is an allotment: its seats are sold with its keys alone, and those keys sell no others of the event. ReleaseBefore, if there is
// one, is how long before the event's start the seats return to the open sale, at ReleasesAt by the start as it is now.
type Channel struct {
	ID            int32
	Event         seats.EventID
	Name          string
	Keys          []uuid.UUID
	ReleaseBefore *time.Duration
	ReleasesAt    *time.Time
	Released      bool
	Timezone      string
	Total         int64
	Free          int64
	Held          int64
	Booked        int64
	Blocked       int64
}

// NewChannel is a channel to be made, released never if ReleaseBefore is nil or 0, with the seats and the places of an area that it begins with.
type NewChannel struct {
	Name          string
	ReleaseBefore *time.Duration
	Keys          []uuid.UUID
	Seats         []seats.ID
	Places        *AreaPlaces
}

// ChannelChange says what of a channel to change; nil leaves a part as it is. A ReleaseBefore of 0 takes the release away.
type ChannelChange struct {
	Name          *string
	ReleaseBefore *time.Duration
	Keys          *[]uuid.UUID
	Add           []seats.ID
	Drop          []seats.ID
}

// Bounds of channels.
const (
	maxChannels     = 100 // of an event
	maxChannelKeys  = 20
	maxAllotted     = 5_000 // seats or places in one request
	maxRelease      = 366 * 24 * time.Hour
	maxChannelBytes = 80 // of a name
)

func checkChannel(name *string, release *time.Duration, keys []uuid.UUID) error {
	switch {
	case name != nil && (*name == "" || len(*name) > maxChannelBytes):
		return invalid("/name", "bad_name", "a name of 1 to %d bytes is needed", maxChannelBytes)
	case release != nil && (*release < 0 || *release > maxRelease):
		return invalid("/release_before_seconds", "bad_time", "a channel is released at most a year before the event")
	case len(keys) > maxChannelKeys:
		return invalid("/keys", "bad_count", "a channel has at most %d keys", maxChannelKeys)
	}
	return nil
}

func checkAllotted(pointer string, ids []seats.ID) error {
	if len(ids) > maxAllotted {
		return invalid(pointer, "too_many_seats", "at most %d seats at once", maxAllotted)
	}
	return checkEach(pointer, seats.Any(ids...))
}

// CreateChannel makes a channel of the organizer's event and puts seats into it, all or none. Seats that somebody has, or another channel,
// are named in the refusal.
func (s *Service) CreateChannel(ctx context.Context, caller Caller, key Idempotency, event seats.EventID, made NewChannel) (Channel, bool, error) {
	if caller.Kind != Organizer {
		return Channel{}, false, ErrForbidden
	}
	if err := errors.Join(checkChannel(&made.Name, made.ReleaseBefore, made.Keys), checkAllotted("/seats", made.Seats)); err != nil {
		return Channel{}, false, err
	}
	if p := made.Places; p != nil && (p.Quantity < 1 || p.Quantity > maxAllotted) {
		return Channel{}, false, invalid("/ga/quantity", "bad_quantity", "between 1 and %d places at once", maxAllotted)
	}
	return once(ctx, s, event, caller, key, func(ctx context.Context) (channel Channel, err error) {
		err = s.writingEvent(ctx, event, nil, func(tx pgx.Tx) error {
			channel, err = s.createChannel(ctx, tx, caller, event, made)
			if err != nil {
				return err
			}
			return remember(ctx, tx, event, caller, key, channel)
		})
		return channel, s.allotRefusal(ctx, err, caller, event, 0, made.Seats)
	}, recalled[Channel])
}

func (s *Service) createChannel(ctx context.Context, tx pgx.Tx, caller Caller, event seats.EventID, made NewChannel) (Channel, error) {
	if _, err := lockOwnForChange(ctx, tx, caller, event); err != nil {
		return Channel{}, err
	}
	next, err := queries.ChannelNext(ctx, tx, int64(event))
	if err != nil {
		return Channel{}, fmt.Errorf("number channel: %w", err)
	}
	id := next.ID
	if next.Known >= maxChannels {
		return Channel{}, invalid("", "too_many_channels", "an event has at most %d channels", maxChannels)
	}
	if made.ReleaseBefore != nil && *made.ReleaseBefore == 0 {
		made.ReleaseBefore = nil
	}
	if err := queries.ChannelInsert(ctx, tx, db.ChannelInsertParams{
		EventID: int64(event), ID: id, Name: made.Name, ReleaseBefore: made.ReleaseBefore,
	}); err != nil {
		return Channel{}, err
	}
	if err := setKeys(ctx, tx, caller, event, id, made.Keys); err != nil {
		return Channel{}, err
	}
	if err := allot(ctx, tx, event, id, made.Seats); err != nil {
		return Channel{}, err
	}
	if made.Places != nil {
		if err := s.allotPlaces(ctx, tx, event, id, *made.Places); err != nil {
			return Channel{}, err
		}
	}
	detail := channelDetail{Name: &made.Name, ReleaseBefore: wholeSeconds(made.ReleaseBefore), Add: made.Seats}
	if len(made.Keys) > 0 {
		detail.Keys = new(len(made.Keys))
	}
	if made.Places != nil {
		detail.Places = made.Places.Quantity
	}
	return channelChanged(ctx, tx, caller, auditChannelCreated, event, id, detail)
}

// channelDetail is what the audit log keeps of a change: what it named, and how many keys there are if it named them.
type channelDetail struct {
	Name          *string    `json:"name,omitempty"`
	ReleaseBefore *int64     `json:"release_before_seconds,omitempty"`
	Keys          *int       `json:"keys,omitempty"`
	Add           []seats.ID `json:"add,omitempty"`
	Drop          []seats.ID `json:"drop,omitempty"`
	Places        int        `json:"places,omitempty"`
}

func wholeSeconds(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	n := int64(d.Seconds())
	return &n
}

// channelChanged ends every change of a channel: nodes learn of it, the log keeps it, and it is read as it is now.
func channelChanged(ctx context.Context, tx pgx.Tx, caller Caller, action string, event seats.EventID, id int32, detail channelDetail) (Channel, error) {
	if err := queries.EventRedrawn(ctx, tx, int64(event)); err != nil {
		return Channel{}, fmt.Errorf("number layout: %w", err)
	}
	if err := audit(ctx, tx, caller, action, &event, channelName(id), detail); err != nil {
		return Channel{}, err
	}
	list, err := readChannels(ctx, tx, event, &id)
	if err != nil || len(list) == 0 {
		return Channel{}, err
	}
	return list[0], nil
}

// channelName is a channel's public id, which is a number within its event.
type channelName int32

func (n channelName) String() string { return fmt.Sprint(int32(n)) }

// setKeys lets these keys sell from the channel, and no others.
func setKeys(ctx context.Context, tx pgx.Tx, caller Caller, event seats.EventID, id int32, keys []uuid.UUID) error {
	known, err := queries.PartnerKeys(ctx, tx, db.PartnerKeysParams{Ids: keys, OrganizerID: caller.Organizer})
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	for i, key := range keys {
		if !slices.Contains(known, key) || slices.Contains(keys[:i], key) {
			return invalid(fmt.Sprintf("/keys/%d", i), "unknown_key", "no partner's key of the organizer, or one that stands twice")
		}
	}
	if err := queries.ChannelKeysDelete(ctx, tx, db.ChannelKeysDeleteParams{EventID: int64(event), ChannelID: id}); err != nil {
		return fmt.Errorf("delete keys: %w", err)
	}
	if err := queries.ChannelKeysInsert(ctx, tx, db.ChannelKeysInsertParams{EventID: int64(event), Keys: keys, ChannelID: id}); err != nil {
		return fmt.Errorf("insert keys: %w", err)
	}
	return nil
}

func allot(ctx context.Context, tx pgx.Tx, event seats.EventID, id int32, list []seats.ID) error {
	if _, err := seats.Lock(ctx, tx, event, list); err != nil {
		return fmt.Errorf("lock seats: %w", err)
	}
	got, err := seats.Allot(ctx, tx, event, id, list)
	if err == nil && len(got) < len(list) {
		err = errLost
	}
	return err
}

// allotPlaces puts places of an area into the channel that are in none. Nothing is sold meanwhile, so too few are too few.
func (s *Service) allotPlaces(ctx context.Context, tx pgx.Tx, event seats.EventID, id int32, places AreaPlaces) error {
	wants, err := s.pick(ctx, tx, event, []int32{0}, places, seats.Patient)
	if errors.Is(err, seats.ErrTooFew) {
		return ErrSoldOut
	}
	if err != nil {
		return err
	}
	_, err = seats.Allot(ctx, tx, event, id, seats.IDs(wants))
	return err
}

// UpdateChannel changes a channel of the organizer's event, all or nothing. Seats that it drops stay with whoever has them.
func (s *Service) UpdateChannel(ctx context.Context, caller Caller, event seats.EventID, id int32, change ChannelChange) (channel Channel, err error) {
	if caller.Kind != Organizer {
		return Channel{}, ErrForbidden
	}
	var keys []uuid.UUID
	if change.Keys != nil {
		keys = *change.Keys
	}
	if err := errors.Join(checkChannel(change.Name, change.ReleaseBefore, keys), checkAllotted("/add", change.Add), checkAllotted("/drop", change.Drop)); err != nil {
		return Channel{}, err
	}
	err = s.writingEvent(ctx, event, nil, func(tx pgx.Tx) error {
		channel, err = updateChannel(ctx, tx, caller, event, id, change)
		return err
	})
	return channel, answer(s.allotRefusal(ctx, err, caller, event, id, change.Add))
}

func updateChannel(ctx context.Context, tx pgx.Tx, caller Caller, event seats.EventID, id int32, change ChannelChange) (Channel, error) {
	if _, err := lockOwnForChange(ctx, tx, caller, event); err != nil {
		return Channel{}, err
	}
	p := db.ChannelUpdateParams{EventID: int64(event), ID: id, Name: change.Name, SetRelease: change.ReleaseBefore != nil}
	if p.SetRelease && *change.ReleaseBefore > 0 {
		p.ReleaseBefore = change.ReleaseBefore
	}
	n, err := queries.ChannelUpdate(ctx, tx, p)
	if err != nil {
		return Channel{}, err
	}
	if n == 0 {
		return Channel{}, ErrNotFound
	}
	if change.Keys != nil {
		if err := setKeys(ctx, tx, caller, event, id, *change.Keys); err != nil {
			return Channel{}, err
		}
	}
	if _, err := seats.Lock(ctx, tx, event, slices.Concat(change.Drop, change.Add)); err != nil {
		return Channel{}, fmt.Errorf("lock seats: %w", err)
	}
	dropped, err := seats.Unallot(ctx, tx, event, id, change.Drop)
	if err != nil {
		return Channel{}, fmt.Errorf("take seats out: %w", err)
	}
	if len(dropped) < len(change.Drop) {
		return Channel{}, invalid("/drop", "not_in_channel", "the channel does not have one of these seats")
	}
	if err := allot(ctx, tx, event, id, change.Add); err != nil {
		return Channel{}, err
	}
	detail := channelDetail{Name: change.Name, ReleaseBefore: wholeSeconds(change.ReleaseBefore), Add: change.Add, Drop: change.Drop}
	if change.Keys != nil {
		detail.Keys = new(len(*change.Keys))
	}
	return channelChanged(ctx, tx, caller, auditChannelChanged, event, id, detail)
}

// DeleteChannel returns the seats of a channel to the open sale. What is sold or held stays so.
func (s *Service) DeleteChannel(ctx context.Context, caller Caller, event seats.EventID, id int32) error {
	if caller.Kind != Organizer {
		return ErrForbidden
	}
	return answer(s.writingEvent(ctx, event, nil, func(tx pgx.Tx) error {
		if _, err := lockOwnForChange(ctx, tx, caller, event); err != nil {
			return err
		}
		ids, err := queries.ChannelSeats(ctx, tx, db.ChannelSeatsParams{EventID: int64(event), ChannelID: id})
		if err != nil {
			return fmt.Errorf("read channel: %w", err)
		}
		if _, err := seats.Lock(ctx, tx, event, ids); err != nil {
			return fmt.Errorf("lock seats: %w", err)
		}
		if _, err := seats.Unallot(ctx, tx, event, id, ids); err != nil {
			return fmt.Errorf("take seats out: %w", err)
		}
		n, err := queries.ChannelDelete(ctx, tx, db.ChannelDeleteParams{EventID: int64(event), ID: id})
		if err != nil {
			return fmt.Errorf("delete channel: %w", err)
		}
		if n == 0 {
			return ErrNotFound
		}
		_, err = channelChanged(ctx, tx, caller, auditChannelRemoved, event, id, channelDetail{})
		return err
	}))
}

// Channels lists the channels of the organizer's event, at most 100.
func (s *Service) Channels(ctx context.Context, caller Caller, event seats.EventID) (list []Channel, err error) {
	if caller.Kind != Organizer {
		return nil, ErrForbidden
	}
	if _, err := s.EventHead(ctx, caller, event); err != nil {
		return nil, err
	}
	list, err = readChannels(ctx, s.pool, event, nil)
	return list, answer(err)
}

// Channel returns one channel and the ids of its seats and places.
func (s *Service) Channel(ctx context.Context, caller Caller, event seats.EventID, id int32) (channel Channel, ids []seats.ID, err error) {
	if caller.Kind != Organizer {
		return channel, nil, ErrForbidden
	}
	err = db.Snapshot(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := readEvent(ctx, tx, caller, event); err != nil {
			return err
		}
		list, err := readChannels(ctx, tx, event, &id)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return ErrNotFound
		}
		channel = list[0]
		ids, err = queries.ChannelSeats(ctx, tx, db.ChannelSeatsParams{EventID: int64(event), ChannelID: id})
		return err
	})
	return channel, ids, answer(err)
}

func readChannels(ctx context.Context, conn db.DBTX, event seats.EventID, id *int32) ([]Channel, error) {
	rows, err := queries.ChannelList(ctx, conn, db.ChannelListParams{EventID: int64(event), ID: id})
	if err != nil {
		return nil, fmt.Errorf("read channels: %w", err)
	}
	list := make([]Channel, len(rows))
	for i, r := range rows {
		list[i] = Channel{
			ID: r.ID, Event: event, Name: r.Name, Keys: r.Keys, ReleaseBefore: r.ReleaseBefore, Released: r.Released, Timezone: r.Timezone,
			Total: r.Total, Booked: r.Booked, Held: r.Held, Blocked: r.Blocked, Free: r.Total - r.Booked - r.Held - r.Blocked,
		}
		if r.ReleaseBefore != nil {
			at := r.StartsAt.Add(-*r.ReleaseBefore).UTC()
			list[i].ReleasesAt = &at
		}
	}
	return list, nil
}

// allotRefusal says which of the seats could not be put into the channel, which has no id yet if it is 0, and why.
func (s *Service) allotRefusal(ctx context.Context, err error, caller Caller, event seats.EventID, id int32, ids []seats.ID) error {
	if db.Violates(err, db.ConstraintChannelName) {
		return invalid("/name", "duplicate_channel", "the event has a channel of this name")
	}
	if !errors.Is(err, errLost) {
		return err
	}
	rows, err := seats.ByID(ctx, s.pool, event, seats.Reach{All: true}, ids)
	if err != nil {
		return answer(fmt.Errorf("read lost seats: %w", err))
	}
	refusal := &SeatsError{Code: CodeSeatTaken, Seats: losers(caller, event, seats.Any(ids...), rows)}
	for _, r := range rows {
		named := slices.ContainsFunc(refusal.Seats, func(l LostSeat) bool { return l.ID == r.ID })
		if r.Channel != nil && *r.Channel != id && !named {
			refusal.Seats = append(refusal.Seats, LostSeat{ID: r.ID, Place: r.Place, Reason: ReasonAllotted, Fence: r.Fence})
		}
	}
	if len(refusal.Seats) == 0 {
		return Busy(ids)
	}
	if slices.ContainsFunc(refusal.Seats, func(l LostSeat) bool { return l.Reason == ReasonUnknown }) {
		refusal.Code = CodeSeatUnknown
	}
	return refusal
}
