package access_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"seatfence/db/dbtest"
	"seatfence/internal/access"
)

func TestAnOriginIsWrittenAsBrowsersDo(t *testing.T) {
	t.Parallel()
	keys := access.New(dbtest.Pool(t))
	for origin, good := range map[string]bool{
		"https://shop.example": true, "https://shop.example:8443": true, "https://xn--bhne-5qa.example": true, "http://localhost:3000": true, "http://127.0.0.1": true,
		"https://localhost": true, "": false, "*": false, "null": false, "shop.example": false, "http://shop.example": false, "http://127.0.0.2": false,
		"https://Shop.example": false, "HTTPS://shop.example": false, "https://shop.example/": false, "https://shop.example/a": false, "https://shop.example?a": false,
		"https://shop.example#a": false, "https://lena@shop.example": false, "https://shop.example:443": false, "https://shop.example:": false, "https://shop.example:0": false,
		"https://shop.example:080": false, "https://shop.example:65536": false, "http://localhost:80": false, "https://*.example": false, "https://shop.example.": false,
		"https://bühne.example": false, "https://shop.example ": false, "https://shop.example,https://a.example": false, "ftp://localhost": false, "https://": false,
		"https://[::1]": false, "http://localhost.evil.example": false, "https://" + strings.Repeat("a", 120): false,
	} {
		_, _, err := keys.Create(t.Context(), "Glass Harbour", "shop", access.ScopePartner, origin)
		if (err == nil) != good || !good && !errors.Is(err, access.ErrBadOrigin) {
			t.Errorf("%q: %v", origin, err)
		}
	}
	var many []string
	for i := range access.MaxOrigins + 1 {
		many = append(many, fmt.Sprintf("https://shop%d.example", i))
	}
	if _, _, err := keys.Create(t.Context(), "Glass Harbour", "shop", access.ScopePartner, many...); !errors.Is(err, access.ErrTooManyOrigins) {
		t.Errorf("%d origins: %v", len(many), err)
	}
	if _, _, err := keys.Create(t.Context(), "Glass Harbour", "shop", access.ScopePartner, append(many[1:], many[1:]...)...); err != nil {
		t.Errorf("%d origins, each twice: %v", access.MaxOrigins, err)
	}
}

func TestPagesOfAKeyUntilItIsRevoked(t *testing.T) {
	t.Parallel()
	pool := dbtest.Pool(t)
	keys := access.New(pool)
	const shop = "https://shop.example"
	_, caller, err := keys.Create(t.Context(), "Glass Harbour", "shop", access.ScopePartner, shop, "https://b.example", shop)
	if err != nil {
		t.Fatal(err)
	}
	id := access.FormatID(caller.ID)
	list, err := keys.List(t.Context())
	if err != nil || len(list) != 1 || !reflect.DeepEqual(list[0].Origins, []string{"https://b.example", shop}) {
		t.Errorf("list %+v, %v", list, err)
	}
	if organizer, err := keys.Page(t.Context(), id, shop); err != nil || organizer != caller.Organizer {
		t.Errorf("organizer %d, %v; want %d", organizer, err, caller.Organizer)
	}
	for _, c := range [][2]string{{id, "https://c.example"}, {id, ""}, {strings.Repeat("0", 22), shop}, {"", shop}, {id + "0", shop}} {
		if _, err := keys.Page(t.Context(), c[0], c[1]); !errors.Is(err, access.ErrOrigin) {
			t.Errorf("key %q from %q: %v", c[0], c[1], err)
		}
	}
	if err := keys.Revoke(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if listed, err := keys.Listed(t.Context(), shop); err != nil || !listed {
		t.Errorf("what was read is kept for a while: %v, %v", listed, err)
	}
	keys.Forget() // as time does
	if listed, err := keys.Listed(t.Context(), shop); err != nil || listed {
		t.Errorf("a key that is revoked still lists its origins: %v, %v", listed, err)
	}
	if _, err := keys.Page(t.Context(), id, shop); !errors.Is(err, access.ErrOrigin) {
		t.Errorf("a key that is revoked: %v", err)
	}
}
