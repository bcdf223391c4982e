// Package staff keeps the people who may act for an organizer, and a log of what was done. A user is invited, sets a password, signs in
// and is removed here; what a role may do, internal/httpapi says, and which events, package booking checks. No password and no secret of a
// session or a link rests in the database or in a job, and nothing here may log one.
package staff

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"seatfence/booking"
	"seatfence/db"
	"seatfence/seats"
)

var queries = db.New()

// What can be answered instead of success, besides what package booking has for everybody.
var (
	ErrWrongPassword = errors.New("the e-mail address or the password is wrong")
	ErrNoSession     = errors.New("no such session, or it has ended")
	ErrBadToken      = errors.New("this link is over: it was used, replaced or is too old")
	ErrLastOwner     = errors.New("an organizer keeps at least one owner")
	ErrEmailTaken    = errors.New("the e-mail address is another user's already")
)

// WaitError says that there were too many wrong passwords, and how long to wait.
type WaitError struct{ Wait time.Duration }

func (e *WaitError) Error() string { return "too many attempts: try again in " + e.Wait.String() }

// Staff is the users of one database. It is safe for concurrent use.
type Staff struct {
	pool   *pgxpool.Pool
	public *url.URL
	jobs   *river.Client[pgx.Tx] // inserts only
	hashes chan struct{}         // one for each password that is hashed at this moment

	mu    sync.Mutex
	known map[[sha256.Size]byte]entry // sessions, by the hash of their secret
}

// New returns the users in pool's database. Links in mails lead to the site at public, whose scheme also decides about the cookie.
func New(pool *pgxpool.Pool, public *url.URL) (*Staff, error) {
	jobs, err := river.NewClient(riverpgxv5.New(pool), &river.Config{})
	if err != nil {
		return nil, fmt.Errorf("set up job queue: %w", err)
	}
	return &Staff{
		pool: pool, public: public, jobs: jobs, hashes: make(chan struct{}, maxHashes),
		known: map[[sha256.Size]byte]entry{},
	}, nil
}

// User is a person who may act for an organizer. Events are those of a user who is not for every event, in the order of their ids.
type User struct {
	ID            uuid.UUID
	Organizer     int64
	OrganizerName string
	Email         string
	Name          string
	Role          string
	EveryEvent    bool
	Events        []seats.EventID
	Active        bool // has set a password
	CreatedAt     time.Time
}

// The roles.
const (
	Owner     = "owner"      // everything, users and the log too
	Editor    = "editor"     // what is sold, and for how much
	BoxOffice = "box_office" // sells
	Door      = "door"       // reads
)

// Roles are all roles, from the one who may most.
var Roles = []string{Owner, Editor, BoxOffice, Door}

func userOf(p db.Person) User {
	u := User{
		ID: p.ID, Organizer: p.OrganizerID, OrganizerName: p.Organizer, Email: p.Email, Name: p.Name, Role: p.Role,
		EveryEvent: p.EveryEvent, Active: p.PasswordHash != nil, CreatedAt: p.CreatedAt.UTC(),
	}
	if !p.EveryEvent {
		u.Events = make([]seats.EventID, len(p.Events))
		for i, id := range p.Events {
			u.Events[i] = seats.EventID(id)
		}
	}
	return u
}

// Caller is the user as the use cases know it.
func (u User) Caller() booking.Caller {
	return booking.Caller{Kind: booking.Organizer, ID: u.ID, Organizer: u.Organizer, Events: u.Events, Staff: true}
}

const userPrefix = "usr_"

// FormatID is the public form of a user's id: "usr_" and 26 characters.
func FormatID(id uuid.UUID) string { return userPrefix + seats.IDEncoding.EncodeToString(id[:]) }

// ParseID reads the public form of a user's id; anything else is seats.ErrBadID.
func ParseID(text string) (id uuid.UUID, err error) {
	if len(text) != len(userPrefix)+26 {
		return id, seats.ErrBadID
	}
	raw, err := seats.IDEncoding.DecodeString(text[len(userPrefix):])
	if err != nil || len(raw) != len(id) || FormatID(uuid.UUID(raw)) != text {
		return id, seats.ErrBadID
	}
	return uuid.UUID(raw), nil
}

// answer turns what Postgres said into what the caller is told.
func answer(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case db.NotFound(err):
		return booking.ErrNotFound
	case db.Violates(err, db.ConstraintUserEmail):
		return ErrEmailTaken
	case db.LockTimedOut(err):
		err = fmt.Errorf("%w: %w", booking.ErrBusy, err)
	case db.Unavailable(err), db.Conflicted(err):
		err = fmt.Errorf("%w: %w", booking.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func invalid(pointer, code, format string, args ...any) error {
	return &booking.InvalidError{Pointer: pointer, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// at gives a refusal another place.
func at(pointer string, err error) error {
	if e, ok := errors.AsType[*booking.InvalidError](err); ok {
		return &booking.InvalidError{Pointer: pointer, Code: e.Code, Detail: e.Detail}
	}
	return err
}
