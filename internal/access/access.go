// Package access keeps the API keys that organizers and partners sign their requests with. A token is shown once, when its key is made;
// the database knows only a hash of its secret. Nothing here may log a token or return one a second time.
package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"seatfence/booking"
	"seatfence/db"
)

var queries = db.New()

// What can be wrong with a key.
var (
	ErrUnknownKey = errors.New("no such API key, or it is revoked")
	ErrBadID      = errors.New("malformed id of an API key")
	ErrBadScope   = errors.New("the scope of an API key is organizer or partner")
	ErrNoName     = errors.New("an API key needs the names of its organizer and of itself")
)

// The scopes of a key.
const (
	ScopeOrganizer = "organizer" // everything in the organizer's events
	ScopePartner   = "partner"   // sells for the organizer, sees its own sales
)

const (
	// cacheTTL is how long a revoked key may live on, on every node.
	cacheTTL = 5 * time.Second
	cacheMax = 4096
)

// Keys are the API keys of one database. It is safe for concurrent use.
type Keys struct {
	pool *pgxpool.Pool

	mu    sync.RWMutex
	known map[[sha256.Size]byte]entry // by the hash of the whole token

	origins origins
}

type entry struct {
	caller booking.Caller
	until  time.Time
}

// New returns the keys in pool's database.
func New(pool *pgxpool.Pool) *Keys {
	return &Keys{pool: pool, known: map[[sha256.Size]byte]entry{}, origins: origins{reading: make(chan struct{}, 1)}}
}

// Key is a key as lists show it. ID is in its public form, Revoked nil while the key works.
type Key struct {
	ID        string
	Organizer string
	Name      string
	Scope     string
	Origins   []string
	Created   time.Time
	Revoked   *time.Time
}

// Create makes a key, and its organizer if there is none of that name. The token cannot be had again. Pages of the origins may watch with
// the key's id.
func (k *Keys) Create(ctx context.Context, organizer, name, scope string, origins ...string) (token string, caller booking.Caller, err error) {
	switch {
	case scope != ScopeOrganizer && scope != ScopePartner:
		return "", caller, ErrBadScope
	case organizer == "" || name == "":
		return "", caller, ErrNoName
	}
	if origins, err = checkOrigins(origins); err != nil {
		return "", caller, err
	}
	id := uuid.New()
	token, hash := newToken(id)
	err = db.InTx(ctx, k.pool, func(tx pgx.Tx) error {
		owner, err := EnsureOrganizer(ctx, tx, organizer)
		if err != nil {
			return err
		}
		caller = callerOf(id, owner, scope)
		return queries.APIKeyInsert(ctx, tx, db.APIKeyInsertParams{ID: id, OrganizerID: owner, Name: name, Scope: scope, SecretHash: hash, Origins: origins})
	})
	if err != nil {
		return "", booking.Caller{}, fmt.Errorf("create API key: %w", err)
	}
	return token, caller, nil
}

// EnsureOrganizer returns the organizer of a name, which is made if there is none. Two who do so at once get the same one.
func EnsureOrganizer(ctx context.Context, tx pgx.Tx, name string) (int64, error) {
	if err := queries.OrganizersLock(ctx, tx); err != nil {
		return 0, err
	}
	id, err := queries.OrganizerByName(ctx, tx, name)
	if db.NotFound(err) {
		return queries.OrganizerInsert(ctx, tx, name)
	}
	return id, err
}

// Revoke ends a key. Nodes that have just seen it accept it for some seconds more.
func (k *Keys) Revoke(ctx context.Context, id string) error {
	key, err := ParseID(id)
	if err != nil {
		return err
	}
	n, err := queries.APIKeyRevoke(ctx, k.pool, key)
	if err != nil {
		return fmt.Errorf("revoke API key: %w", err)
	}
	if n == 0 {
		return ErrUnknownKey
	}
	return nil
}

// List returns all keys, revoked ones too, oldest first.
func (k *Keys) List(ctx context.Context) ([]Key, error) {
	rows, err := queries.APIKeyList(ctx, k.pool)
	if err != nil {
		return nil, fmt.Errorf("list API keys: %w", err)
	}
	list := make([]Key, len(rows))
	for i, r := range rows {
		list[i] = Key{ID: FormatID(r.ID), Organizer: r.Organizer, Name: r.Name, Scope: r.Scope, Origins: r.Origins, Created: r.CreatedAt.UTC()}
		if r.RevokedAt != nil {
			at := r.RevokedAt.UTC()
			list[i].Revoked = &at
		}
	}
	return list, nil
}

// Lookup returns who signs with the token: ErrUnknownKey for a token that is malformed, invented, wrong or revoked, all alike; any other
// error says that the database could not be asked.
func (k *Keys) Lookup(ctx context.Context, token string) (booking.Caller, error) {
	id, hash, ok := parseToken(token)
	if !ok {
		return booking.Caller{}, ErrUnknownKey
	}
	cacheKey := sha256.Sum256([]byte(token))
	if caller, ok := k.cached(cacheKey); ok {
		return caller, nil
	}
	row, err := queries.APIKeyGet(ctx, k.pool, id)
	unknown := db.NotFound(err)
	if err != nil && !unknown {
		return booking.Caller{}, fmt.Errorf("%w: look up API key: %w", booking.ErrUnavailable, err)
	}
	stored := row.SecretHash
	if unknown {
		stored = make([]byte, sha256.Size) // compared all the same: an id that exists must not be told by the time it takes
	}
	if subtle.ConstantTimeCompare(stored, hash) != 1 || unknown {
		return booking.Caller{}, ErrUnknownKey
	}
	caller := callerOf(row.ID, row.OrganizerID, row.Scope)
	k.remember(cacheKey, caller)
	return caller, nil
}

func (k *Keys) cached(key [sha256.Size]byte) (booking.Caller, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	e, ok := k.known[key]
	return e.caller, ok && time.Now().Before(e.until)
}

func (k *Keys) remember(key [sha256.Size]byte, caller booking.Caller) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) >= cacheMax {
		clear(k.known) // rarer than anything a finer rule would be worth
	}
	k.known[key] = entry{caller, time.Now().Add(cacheTTL)}
}

func callerOf(id uuid.UUID, organizer int64, scope string) booking.Caller {
	caller := booking.Caller{Kind: booking.Partner, ID: id, Organizer: organizer}
	if scope == ScopeOrganizer {
		caller.Kind = booking.Organizer
	}
	return caller
}
