package stream_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"seatfence/db/dbtest"
	"seatfence/internal/stream"
	"seatfence/realtime"
)

func tickets(t *testing.T, url string, key byte) *stream.Tickets {
	t.Helper()
	rdb, err := realtime.OpenRedis(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	made, err := stream.NewTickets(bytes.Repeat([]byte{key}, 32), rdb)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestTicketIsGoodOnceOnAnyNode(t *testing.T) {
	t.Parallel()
	url := dbtest.Redis(t)
	here, there := tickets(t, url, 'k'), tickets(t, url, 'k')
	ticket, _ := here.Make("sfs_secret")
	if strings.Contains(ticket, "secret") {
		t.Error("the credential can be read")
	}
	if credential, err := there.Take(t.Context(), ticket); err != nil || credential != "sfs_secret" {
		t.Errorf("%q, %v", credential, err)
	}
	for _, node := range []*stream.Tickets{here, there} {
		if _, err := node.Take(t.Context(), ticket); !errors.Is(err, stream.ErrTicket) {
			t.Errorf("the second time: %v", err)
		}
	}
}

func TestWhatIsNoTicketIsRefused(t *testing.T) {
	t.Parallel()
	here, other := tickets(t, dbtest.Redis(t), 'k'), tickets(t, dbtest.Redis(t), 'x')
	forged, _ := other.Make("sfs_secret")
	changed, _ := here.Make("sfs_secret")
	first := byte('A')
	if changed[0] == first {
		first = 'B'
	}
	for _, ticket := range []string{"", "x", forged, string(first) + changed[1:], changed + "A", changed[:len(changed)-4], strings.Repeat("A", 5000), "ü"} {
		if credential, err := here.Take(t.Context(), ticket); !errors.Is(err, stream.ErrTicket) {
			t.Errorf("%.40q: %q, %v", ticket, credential, err)
		}
	}
}

func TestTicketIsNotTakenWhereNobodyKnowsWhetherItWasUsed(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	here := tickets(t, srv.RedisURL, 'k')
	ticket, _ := here.Make("sfs_secret")
	if err := srv.Redis.Kill(); err != nil {
		t.Fatal(err)
	}
	if credential, err := here.Take(context.Background(), ticket); err == nil || errors.Is(err, stream.ErrTicket) || credential != "" {
		t.Errorf("%q, %v", credential, err)
	}
}

func TestTicketIsGoodForThirtySeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, err := stream.NewTickets(bytes.Repeat([]byte{'k'}, 32), nil) // a ticket that is over is not asked about
		must(t, err)
		ticket, until := here.Make("sfs_secret")
		if left := time.Until(until); left < 29*time.Second || left > stream.TicketLife {
			t.Errorf("it is said to be good for %v", left)
		}
		time.Sleep(stream.TicketLife)
		if _, err := here.Take(t.Context(), ticket); !errors.Is(err, stream.ErrTicket) {
			t.Errorf("after 30 s: %v", err)
		}
	})
}
