package access

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"seatfence/booking"
	"seatfence/db"
)

const (
	// MaxOrigins is how many origins a key lists.
	MaxOrigins = 10
	// maxOrigin is in characters: a ticket of the stream carries an origin, and is short.
	maxOrigin = 120

	originsTTL  = 10 * time.Second // how long a key that was revoked still lets pages in
	originsWait = 2 * time.Second
	originsMost = 10_000 // keys that list origins; of more, the oldest
)

// What can be wrong with origins.
var (
	ErrBadOrigin      = errors.New("an origin is https://host or https://host:port, in lower case and without a path; http only for localhost and 127.0.0.1")
	ErrTooManyOrigins = fmt.Errorf("an API key lists %d origins at most", MaxOrigins)
	// ErrOrigin says that a page may not watch: its key is unknown or revoked, or does not list the page's origin, all alike.
	ErrOrigin = errors.New("the key is not for pages of this origin")
)

// hostName is a name of the DNS or an address of IPv4, as browsers write them in an Origin header.
var hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

// checkOrigins returns the origins without repetitions. They are compared with what browsers send byte by byte, so each is held to the one
// way in which a browser writes it.
func checkOrigins(list []string) ([]string, error) {
	sorted := slices.Compact(slices.Sorted(slices.Values(list)))
	if len(sorted) > MaxOrigins {
		return nil, ErrTooManyOrigins
	}
	for _, text := range sorted {
		if !plainOrigin(text) {
			return nil, fmt.Errorf("%q: %w", text, ErrBadOrigin)
		}
	}
	if sorted == nil {
		sorted = []string{} // the column has no NULL
	}
	return sorted, nil
}

func plainOrigin(text string) bool {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxOrigin || u.Scheme+"://"+u.Host != text || !hostName.MatchString(u.Hostname()) {
		return false
	}
	local := u.Hostname() == "localhost" || u.Hostname() == "127.0.0.1"
	if u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return false
	}
	if !strings.Contains(u.Host, ":") {
		return true
	}
	// Browsers leave out the port that a scheme has anyway.
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && port > 0 && strconv.FormatUint(port, 10) == u.Port() && (u.Scheme != "https" || port != 443) && (u.Scheme != "http" || port != 80)
}

// origins is what the keys list, all of it at once: whoever invents origins cannot make the database be asked for each.
type origins struct {
	reading chan struct{} // is taken by who reads
	list    atomic.Pointer[originList]
}

type originList struct {
	until time.Time
	known map[string]map[uuid.UUID]int64 // origin → key → organizer
}

// Listed reports whether a key that works lists the origin.
func (k *Keys) Listed(ctx context.Context, origin string) (bool, error) {
	list, err := k.originList(ctx)
	if err != nil {
		return false, err
	}
	return len(list.known[origin]) > 0, nil
}

// Page returns the organizer whose events pages of an origin may watch with a key's public id, or ErrOrigin.
func (k *Keys) Page(ctx context.Context, id, origin string) (organizer int64, err error) {
	key, err := ParseID(id)
	if err != nil {
		return 0, ErrOrigin
	}
	list, err := k.originList(ctx)
	if err != nil {
		return 0, err
	}
	organizer, ok := list.known[origin][key]
	if !ok {
		return 0, ErrOrigin
	}
	return organizer, nil
}

func (k *Keys) originList(ctx context.Context) (*originList, error) {
	if list := k.origins.list.Load(); list.fresh() {
		return list, nil
	}
	ctx, cancel := context.WithTimeout(ctx, originsWait)
	defer cancel()
	select {
	case k.origins.reading <- struct{}{}:
		defer func() { <-k.origins.reading }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: look up origins: %w", booking.ErrUnavailable, ctx.Err())
	}
	if list := k.origins.list.Load(); list.fresh() {
		return list, nil // somebody has read it meanwhile
	}
	list := &originList{time.Now().Add(originsTTL), map[string]map[uuid.UUID]int64{}}
	rows, err := queries.APIKeyOrigins(ctx, k.pool, originsMost)
	if err != nil {
		return nil, fmt.Errorf("%w: look up origins: %w", booking.ErrUnavailable, err)
	}
	for _, r := range rows {
		list.add(r)
	}
	k.origins.list.Store(list)
	return list, nil
}

func (l *originList) fresh() bool { return l != nil && time.Now().Before(l.until) }

func (l *originList) add(row db.APIKeyOriginsRow) {
	for _, origin := range row.Origins {
		if l.known[origin] == nil {
			l.known[origin] = map[uuid.UUID]int64{}
		}
		l.known[origin][row.ID] = row.OrganizerID
	}
}
