package lockmgr_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatfence/db/dbtest"
	"seatfence/lockmgr"
)

var (
	interleavings = flag.Int("interleavings", 1000, "random interleavings of edit locks to try")
	seed          = flag.Uint64("interleaving-seed", 0, "seed of the first; 0: random")
)

// Leases so short that a slow call outlives them.
const (
	shortLease = 40 * time.Millisecond
	shortGrace = 25 * time.Millisecond
	shortTomb  = 60 * time.Millisecond
	shortIdle  = 30 * time.Millisecond
)

// Not parallel: it keeps the machine busy, and other tests here measure time.
func TestRandomInterleavingsLoseNothing(t *testing.T) {
	first := *seed
	if first == 0 {
		first = rand.Uint64()
	}
	t.Logf("%d interleavings, -interleaving-seed=%d", *interleavings, first)
	rdb := plain(t, dbtest.OwnRedis(t))
	interleave(t, rdb, first, *interleavings)
}

// interleave runs n scenes on rdb, each in a root of its own.
func interleave(t *testing.T, rdb redis.UniversalClient, first uint64, n int) {
	t.Helper()
	rdb.AddHook(slow{})
	const abreast = 48 // mostly asleep
	var wg sync.WaitGroup
	next := make(chan int)
	totals := &counts{n: map[string]int{}}
	for range abreast {
		wg.Go(func() {
			for i := range next {
				playScene(t, rdb, first+uint64(i), totals)
			}
		})
	}
	for i := range n {
		if t.Failed() {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	t.Logf("what happened: %v", totals.n)
	for _, kind := range []string{"unlocked", "left", "expired", "taken-over", "idle", "withdrawn", "lock-detached", "lock-attached", "held", "closed", "not held", "lost"} {
		if n >= 1000 && totals.n[kind] == 0 {
			t.Errorf("no interleaving had a %q", kind)
		}
	}
}

type counts struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counts) add(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[kind]++
}

// slow delays calls before they reach Redis and after, by what the scene's dice
// in the context say.
type (
	slow    struct{}
	diceKey struct{}
)

func (slow) DialHook(next redis.DialHook) redis.DialHook { return next }
func (slow) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (slow) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		d, ok := ctx.Value(diceKey{}).(*dice)
		if !ok {
			return next(ctx, cmd)
		}
		d.wait()
		err := next(ctx, cmd)
		d.wait()
		return err
	}
}

// dice belong to one goroutine.
type dice struct{ *rand.Rand }

func (d *dice) wait() {
	switch d.IntN(20) {
	case 0: // past a lease
		time.Sleep(shortLease + time.Duration(d.IntN(40))*time.Millisecond)
	case 1, 2, 3, 4, 5, 6, 7:
		time.Sleep(time.Duration(d.IntN(3000)) * time.Microsecond)
	}
}

// scene is a root where a few pages do as they like.
type scene struct {
	*lockmgr.Edits
	t      *testing.T
	root   string
	totals *counts

	late     sync.WaitGroup // closes of older sockets still under way
	mu       sync.Mutex
	unlocked map[[2]string]int // session hash and resource: releases that were granted
	tokens   map[int64]string  // whose each was
}

func playScene(t *testing.T, rdb redis.UniversalClient, seed uint64, totals *counts) {
	root := fmt.Sprint("scene-", seed)
	s := &scene{
		Edits: lockmgr.NewEdits(rdb, topicOf), t: t, root: root, totals: totals,
		unlocked: map[[2]string]int{}, tokens: map[int64]string{},
	}
	s.Shorten(shortLease, shortGrace, shortTomb, time.Minute)

	var pages sync.WaitGroup
	for i := range 4 {
		d := &dice{rand.New(rand.NewPCG(seed, uint64(i)))}
		user := fmt.Sprint("user", i/2) // two tabs each
		pages.Go(func() {
			s.page(d, lockmgr.Session{ID: fmt.Sprint(root, " tab ", i), Gen: 1, Node: "n0", User: user, Name: user})
		})
	}
	over := make(chan struct{})
	var sweeper sync.WaitGroup
	sweeper.Go(func() {
		d := &dice{rand.New(rand.NewPCG(seed, 99))}
		for {
			select {
			case <-over:
				return
			case <-time.After(5 * time.Millisecond):
				_, err := s.Sweep(s.ctx(d), root, time.Duration(d.IntN(2))*shortIdle)
				s.fine(err)
			}
		}
	})
	pages.Wait()
	s.late.Wait()
	close(over)
	sweeper.Wait()

	o := office{s.Edits, t, rdb}
	waitFor(t, root+" to end", func() bool {
		next, err := s.Sweep(t.Context(), root, 0)
		s.fine(err)
		return err != nil || next == -1
	})
	o.wantEmpty(root)
	s.check(history(t, rdb, root))
	for _, key := range []string{":m", ":e", ":lk:token"} {
		if ttl := rdb.PTTL(t.Context(), topicOf(root).Tag+key).Val(); ttl == -1 {
			t.Errorf("%s: %s has no TTL", root, key)
		}
	}
}

func (s *scene) ctx(d *dice) context.Context {
	return context.WithValue(s.t.Context(), diceKey{}, d)
}

func (s *scene) fine(err error) {
	if err != nil {
		s.t.Errorf("%s: %v", s.root, err)
	}
}

// page is the life of a tab: what it does and what its node does for it.
func (s *scene) page(d *dice, me lockmgr.Session) {
	resources := []string{"", "1/seats", "1/details", "/variables"}
	held := map[string]int64{} // what it believes to hold, some of it wrongly
	for range 6 + d.IntN(8) {
		d.wait()
		res := resources[d.IntN(len(resources))]
		switch d.IntN(16) {
		case 0, 1, 2, 3, 4, 5:
			s.acquire(d, res, me, d.IntN(5) == 0, held)
		case 6, 7, 8:
			s.release(d, res, me, held[res])
		case 9, 10: // a reload; the old socket's end is heard of at any time
			old := me
			me.Gen++
			me.Node = fmt.Sprint("n", d.IntN(2))
			s.closeLate(d, old)
			locks, err := s.Attach(s.ctx(d), s.root, me)
			s.fine(err)
			clear(held)
			for _, l := range locks {
				held[l.Resource] = l.Token
			}
		case 11:
			s.fine(s.Touch(s.ctx(d), s.root, me.ID))
		case 12:
			s.fine(s.End(s.ctx(d), s.root, me, lockmgr.WhyLeft))
			// Its last request is still under way.
			s.acquire(d, res, me, false, held)
			me.Gen++
		case 13:
			if d.IntN(4) == 0 {
				s.fine(s.Revoke(s.ctx(d), s.root, me.User))
			}
		case 14:
			if d.IntN(4) == 0 {
				return // killed
			}
		}
		lost, err := s.Renew(s.ctx(d), s.root, me.Node, []lockmgr.SessionRef{{ID: me.ID, Gen: me.Gen}})
		s.fine(err)
		if len(lost) > 0 {
			s.totals.add("lost")
			if d.IntN(2) == 0 { // or it sleeps and tries what it remembers
				clear(held)
			}
		}
	}
	s.fine(s.End(s.ctx(d), s.root, me, lockmgr.WhyLeft))
}

func (s *scene) closeLate(d *dice, old lockmgr.Session) {
	own := &dice{rand.New(rand.NewPCG(d.Uint64(), 0))}
	s.late.Go(func() {
		own.wait()
		if own.IntN(3) == 0 {
			s.fine(s.End(s.ctx(own), s.root, old, lockmgr.WhyLeft))
		} else {
			s.fine(s.Detach(s.ctx(own), s.root, old))
		}
	})
}

func (s *scene) acquire(d *dice, res string, me lockmgr.Session, takeOver bool, held map[string]int64) {
	l, err := s.Acquire(s.ctx(d), s.root, res, me, takeOver)
	_, isHeld := errors.AsType[*lockmgr.HeldError](err)
	switch {
	case isHeld:
		s.totals.add("held")
		if takeOver {
			s.t.Errorf("%s: take-over of %q refused: %v", s.root, res, err)
		}
	case errors.Is(err, lockmgr.ErrSessionClosed):
		s.totals.add("closed")
	case err != nil:
		s.fine(err)
	default:
		held[res] = l.Token
		s.mu.Lock()
		defer s.mu.Unlock()
		if who, ok := s.tokens[l.Token]; ok && who != me.ID+res {
			s.t.Errorf("%s: token %d was given twice", s.root, l.Token)
		}
		s.tokens[l.Token] = me.ID + res
	}
}

func (s *scene) release(d *dice, res string, me lockmgr.Session, token int64) {
	ok, err := s.Release(s.ctx(d), s.root, res, me.ID, token)
	s.fine(err)
	if !ok {
		s.totals.add("not held")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlocked[[2]string{lockmgr.SessionHash(me.ID), res}]++
}

// check replays the events: they alone say who held what. A lock that went
// without one, or from another than its holder, shows here.
func (s *scene) check(events []said) {
	bad := func(e said, what string) {
		s.t.Errorf("%s: event %d %s %s of %s (%s): %s", s.root, e.Seq, e.Type, e.res(), e.Session, e.Why, what)
	}
	if len(events) > 0 && events[0].Seq != 1 {
		bad(events[0], "the first ones are lost")
	}
	holder := map[string]string{}
	for i, e := range events {
		res := e.res()
		switch e.Type {
		case "lock-acquired":
			if h := holder[res]; h != "" {
				bad(e, "held by "+h)
			}
			for other, h := range holder {
				if h != e.Session && (res == "all" || other == "all") {
					bad(e, other+" is held by "+h)
				}
			}
			holder[res] = e.Session
		case "lock-released":
			if holder[res] != e.Session {
				bad(e, "held by "+holder[res])
			}
			delete(holder, res)
			s.totals.add(e.Why)
			switch e.Why {
			case lockmgr.WhyUnlocked:
				key := [2]string{e.Session, res}
				if res == "all" {
					key[1] = ""
				}
				if s.unlocked[key]--; s.unlocked[key] < 0 {
					bad(e, "nobody was told so")
				}
			case lockmgr.WhyTakenOver:
				rest := events[i+1:]
				taken := slices.IndexFunc(rest, func(n said) bool { return n.Type == "lock-acquired" })
				if taken < 0 || rest[taken].Session == e.Session {
					bad(e, "nobody has it after the take-over")
				}
			}
		default:
			if holder[res] != e.Session {
				bad(e, "held by "+holder[res])
			}
			s.totals.add(e.Type)
		}
	}
	if len(holder) > 0 {
		s.t.Errorf("%s: nothing said that %v were released", s.root, holder)
	}
	for key, n := range s.unlocked {
		if n != 0 {
			s.t.Errorf("%s: %d releases of %v were granted and not said", s.root, n, key)
		}
	}
}
