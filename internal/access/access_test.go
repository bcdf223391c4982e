package access_test

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"seatfence/booking"
	"seatfence/db/dbtest"
	"seatfence/internal/access"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

func TestATokenNamesItsKey(t *testing.T) {
	t.Parallel()
	keys := access.New(dbtest.Pool(t))
	for scope, kind := range map[string]booking.Kind{access.ScopeOrganizer: booking.Organizer, access.ScopePartner: booking.Partner} {
		token, made, err := keys.Create(t.Context(), "Glass Harbour", "till", scope)
		if err != nil {
			t.Fatal(err)
		}
		if made.Kind != kind || made.Organizer == 0 {
			t.Errorf("a key of scope %s is of kind %d for organizer %d", scope, made.Kind, made.Organizer)
		}
		for range 2 { // from the database, then from the cache
			caller, err := keys.Lookup(t.Context(), token)
			if err != nil || !reflect.DeepEqual(caller, made) {
				t.Errorf("lookup of a %s token: %v, %v; want %v", scope, caller, err, made)
			}
		}
		if !strings.Contains(token, access.FormatID(made.ID)) {
			t.Errorf("token %q does not show the id of its key", token)
		}
	}
}

func TestTwoKeysOfOneNameShareTheirOrganizer(t *testing.T) {
	t.Parallel()
	keys := access.New(dbtest.Pool(t))
	const n = 8
	organizers := make([]int64, n)
	var all sync.WaitGroup
	for i := range organizers {
		all.Go(func() {
			_, caller, err := keys.Create(t.Context(), "Glass Harbour", "till", access.ScopePartner)
			if err != nil {
				t.Error(err)
			}
			organizers[i] = caller.Organizer
		})
	}
	all.Wait()
	for _, id := range organizers {
		if id != organizers[0] {
			t.Fatalf("eight keys made at once have organizers %v", organizers)
		}
	}
}

func TestTheDatabaseDoesNotKnowATokensSecret(t *testing.T) {
	t.Parallel()
	pool := dbtest.Pool(t)
	token, _, err := access.New(pool).Create(t.Context(), "Glass Harbour", "till", access.ScopePartner)
	if err != nil {
		t.Fatal(err)
	}
	var dump string
	if err := pool.QueryRow(t.Context(), "SELECT string_agg(k::text, ' ') || string_agg(encode(secret_hash, 'escape'), ' ') FROM api_keys k").Scan(&dump); err != nil {
		t.Fatal(err)
	}
	secret := token[len("sf_")+22+1:][:27]
	if strings.Contains(dump, secret) {
		t.Error("the secret of a token is stored")
	}
}

func TestWrongTokensAreRefusedAlike(t *testing.T) {
	t.Parallel()
	keys := access.New(dbtest.Pool(t))
	token, _, err := keys.Create(t.Context(), "Glass Harbour", "till", access.ScopePartner)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := access.NewToken(uuid.New())
	wrongSecret := forge(t, token)
	for name, bad := range map[string]string{
		"empty":                    "",
		"prefix only":              "sf_",
		"cut":                      token[:len(token)-1],
		"longer":                   token + "0",
		"mistyped":                 token[:40] + flip(token[40]) + token[41:],
		"other case":               strings.ToUpper(token),
		"not text":                 strings.Repeat("\xff", len(token)),
		"unknown id":               other,
		"known id, another secret": wrongSecret,
	} {
		if _, err := keys.Lookup(t.Context(), bad); !errors.Is(err, access.ErrUnknownKey) {
			t.Errorf("%s: %v, want ErrUnknownKey", name, err)
		}
	}
}

func TestAMistypedTokenNeverReachesTheDatabase(t *testing.T) {
	t.Parallel()
	keys := access.New(nil) // a query would panic
	token, _ := access.NewToken(uuid.New())
	for i := range len(token) {
		bad := token[:i] + flip(token[i]) + token[i+1:]
		if _, err := keys.Lookup(t.Context(), bad); !errors.Is(err, access.ErrUnknownKey) {
			t.Fatalf("character %d changed: %v", i, err)
		}
	}
}

func TestARevokedKeyIsForgottenInTime(t *testing.T) {
	t.Parallel()
	pool := dbtest.Pool(t)
	one, other := access.New(pool), access.New(pool) // two nodes
	token, caller, err := one.Create(t.Context(), "Glass Harbour", "till", access.ScopePartner)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Lookup(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	if err := one.Revoke(t.Context(), access.FormatID(caller.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := one.Lookup(t.Context(), token); !errors.Is(err, access.ErrUnknownKey) {
		t.Errorf("on a node that has not seen it a revoked key is answered %v", err)
	}
	access.Expire(other)
	if _, err := other.Lookup(t.Context(), token); !errors.Is(err, access.ErrUnknownKey) {
		t.Errorf("after the cache's time a revoked key is answered %v", err)
	}
	if err := one.Revoke(t.Context(), access.FormatID(caller.ID)); !errors.Is(err, access.ErrUnknownKey) {
		t.Errorf("revoking twice: %v", err)
	}
	list, err := one.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Revoked == nil || list[0].ID != access.FormatID(caller.ID) {
		t.Errorf("list after revoking: %+v, %v", list, err)
	}
}

func TestACachedKeyLivesShorterThanPromised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if !access.CachedFor(5*time.Second) || access.CachedFor(10*time.Second) {
			t.Error("a cached key must be forgotten within ten seconds")
		}
	})
}

func TestTheCacheIsBounded(t *testing.T) {
	t.Parallel()
	if n := access.CacheSizeAfter(10_000); n > 4096 {
		t.Errorf("%d keys are cached", n)
	}
}

func TestAKeyNeedsNamesAndAScope(t *testing.T) {
	t.Parallel()
	keys := access.New(nil)
	if _, _, err := keys.Create(t.Context(), "Glass Harbour", "till", "admin"); !errors.Is(err, access.ErrBadScope) {
		t.Errorf("unknown scope: %v", err)
	}
	if _, _, err := keys.Create(t.Context(), "", "till", access.ScopePartner); !errors.Is(err, access.ErrNoName) {
		t.Errorf("no organizer: %v", err)
	}
	if err := keys.Revoke(t.Context(), "x"); !errors.Is(err, access.ErrBadID) {
		t.Errorf("malformed id: %v", err)
	}
}

func TestIDsHaveOneForm(t *testing.T) {
	t.Parallel()
	for _, id := range []uuid.UUID{uuid.Nil, uuid.Max, uuid.New()} {
		text := access.FormatID(id)
		if back, err := access.ParseID(text); err != nil || back != id || len(text) != 22 {
			t.Errorf("%v: %q, %v, %v", id, text, back, err)
		}
	}
	for _, bad := range []string{"", "0", "-" + strings.Repeat("0", 21), "+" + strings.Repeat("0", 21), strings.Repeat("Z", 22), strings.Repeat("_", 22)} {
		if _, err := access.ParseID(bad); !errors.Is(err, access.ErrBadID) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// forge returns a well-formed token with the id of another and a secret of its own.
func forge(t *testing.T, token string) string {
	t.Helper()
	id, err := access.ParseID(token[len("sf_"):][:22])
	if err != nil {
		t.Fatal(err)
	}
	forged, _ := access.NewToken(id)
	return forged
}

func flip(c byte) string {
	if c == 'a' {
		return "b"
	}
	return "a"
}
