package lockmgr_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatfence/db/dbtest"
	"seatfence/lockmgr"
)

const root = "7"

// Three pages: two tabs of Lena's and one of Omar's.
var (
	lenaTab = lockmgr.Session{ID: "lena-tab-1", Gen: 1, Node: "node-a", User: "u1", Name: `Lena "L" Ö`}
	lenaTwo = lockmgr.Session{ID: "lena-tab-2", Gen: 1, Node: "node-a", User: "u1", Name: `Lena "L" Ö`}
	omarTab = lockmgr.Session{ID: "omar-tab-1", Gen: 1, Node: "node-b", User: "u2", Name: "Omar"}
)

// topicOf is what the stream's package names a configurator's stream.
func topicOf(root string) lockmgr.Topic {
	tag := "{t:configurator:" + root + "}"
	return lockmgr.Topic{Meta: tag + ":m", Stream: tag + ":e", Channel: tag + ":c", Tag: tag}
}

// office is a Redis with edit locks and the means to look at them.
type office struct {
	*lockmgr.Edits
	t   testing.TB
	rdb redis.UniversalClient
}

// newOffice is where a cluster would be put in place of one server.
func newOffice(t testing.TB) office {
	t.Helper()
	return officeOn(t, plain(t, dbtest.OwnRedis(t)))
}

func officeOn(t testing.TB, rdb redis.UniversalClient) office {
	return office{lockmgr.NewEdits(rdb, topicOf), t, rdb}
}

func next(s lockmgr.Session, node string) lockmgr.Session {
	s.Gen++
	s.Node = node
	return s
}

func (o office) take(res string, s lockmgr.Session) lockmgr.Lock {
	o.t.Helper()
	l, err := o.Acquire(o.t.Context(), root, res, s, false)
	if err != nil {
		o.t.Fatalf("%s takes %q: %v", s.ID, res, err)
	}
	return l
}

func (o office) seize(res string, s lockmgr.Session) lockmgr.Lock {
	o.t.Helper()
	l, err := o.Acquire(o.t.Context(), root, res, s, true)
	if err != nil {
		o.t.Fatalf("%s takes %q over: %v", s.ID, res, err)
	}
	return l
}

// refused wants the lock to be in somebody's way.
func (o office) refused(res string, s, by lockmgr.Session) *lockmgr.HeldError {
	o.t.Helper()
	_, err := o.Acquire(o.t.Context(), root, res, s, false)
	held, ok := errors.AsType[*lockmgr.HeldError](err)
	if !ok {
		o.t.Fatalf("%s asks for %q and gets %v, want it held", s.ID, res, err)
	}
	if held.By.SessionHash != lockmgr.SessionHash(by.ID) || held.By.User != by.User || held.By.Name != by.Name {
		o.t.Fatalf("%q is held by %+v, want %s", res, held.By, by.ID)
	}
	return held
}

func (o office) release(res string, s lockmgr.Session, token int64, want bool) {
	o.t.Helper()
	got, err := o.Release(o.t.Context(), root, res, s.ID, token)
	if err != nil || got != want {
		o.t.Fatalf("%s releases %q: %v %v, want %v", s.ID, res, got, err, want)
	}
}

func (o office) detach(s lockmgr.Session) { o.t.Helper(); must(o.t, o.Detach(o.t.Context(), root, s)) }

func (o office) end(s lockmgr.Session) {
	o.t.Helper()
	must(o.t, o.End(o.t.Context(), root, s, lockmgr.WhyLeft))
}

func (o office) sweep() time.Duration {
	o.t.Helper()
	next, err := o.Sweep(o.t.Context(), root, 0)
	must(o.t, err)
	return next
}

// said are the events of a root so far: kind, resource, session, why.
func (o office) said(root string) []string {
	o.t.Helper()
	var said []string
	for _, e := range history(o.t, o.rdb, root) {
		name := map[string]string{}
		for _, s := range []lockmgr.Session{lenaTab, lenaTwo, omarTab} {
			name[lockmgr.SessionHash(s.ID)] = s.ID
		}
		said = append(said, strings.TrimSpace(strings.Join([]string{e.Type, e.res(), name[e.Session], e.Why}, " ")))
	}
	return said
}

func (o office) wantSaid(want ...string) {
	o.t.Helper()
	if got := o.said(root); !slices.Equal(got, want) {
		o.t.Errorf("events\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// wantEmpty wants no lock, no index and no registry.
func (o office) wantEmpty(root string) {
	o.t.Helper()
	for _, name := range []string{"locks", "index", "sessions", "due", "active"} {
		key := topicOf(root).Tag + ":lk:" + name
		if n, err := o.rdb.Exists(o.t.Context(), key).Result(); err != nil || n != 0 {
			o.t.Errorf("%s is still there (%v): %s", key, err, dump(o.t, o.rdb, key))
		}
	}
}

// keys lists all that is in Redis, on every master of a cluster.
func (o office) keys() []string {
	o.t.Helper()
	cluster, ok := o.rdb.(*redis.ClusterClient)
	if !ok {
		return keys(o.t, o.rdb.(*redis.Client))
	}
	var mu sync.Mutex
	var all []string
	must(o.t, cluster.ForEachMaster(o.t.Context(), func(_ context.Context, one *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, keys(o.t, one)...)
		return nil
	}))
	return all
}

func dump(t testing.TB, rdb redis.UniversalClient, key string) string {
	ctx := t.Context()
	switch rdb.Type(ctx, key).Val() {
	case "hash":
		return fmt.Sprint(rdb.HGetAll(ctx, key).Val())
	case "zset":
		return fmt.Sprint(rdb.ZRangeWithScores(ctx, key, 0, -1).Val())
	}
	return rdb.Get(ctx, key).String()
}

// said is an event as viewers get it.
type said struct {
	Seq      int64 `json:"-"`
	Type     string
	Resource struct{ Item, Page string }
	By       struct{ User, Name string }
	Session  string `json:"session_hash"`
	Why      string
}

func (e said) res() string {
	if e.Resource.Page == "" {
		return "all"
	}
	return e.Resource.Item + "/" + e.Resource.Page
}

// history reads a root's stream, whose numbers must have no gap but before the first.
func history(t testing.TB, rdb redis.UniversalClient, root string) []said {
	t.Helper()
	list, err := rdb.XRange(context.WithoutCancel(t.Context()), topicOf(root).Stream, "-", "+").Result()
	must(t, err)
	events := make([]said, len(list))
	for i, m := range list {
		must(t, json.Unmarshal([]byte(m.Values["d"].(string)), &events[i]))
		var one int64
		if _, err := fmt.Sscanf(m.ID, "%d-%d", &events[i].Seq, &one); err != nil || one != 1 {
			t.Fatalf("entry %s: %v", m.ID, err)
		}
		if i > 0 && events[i].Seq != events[i-1].Seq+1 {
			t.Fatalf("event %d comes after %d", events[i].Seq, events[i-1].Seq)
		}
	}
	return events
}

func TestGroupAndMemberExcludeEachOther(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	page := o.take("3/seats", lenaTab)
	o.take("4/seats", lenaTab)
	if held := o.refused("", omarTab, lenaTab); held.By.Resource == "" || held.OwnOtherTab {
		t.Errorf("the group is refused for %+v, want a page of another user", held)
	}
	o.take("5/seats", omarTab)
	o.refused("3/seats", omarTab, lenaTab)
	o.refused("", lenaTab, omarTab)

	o.end(omarTab)
	group := o.take("", lenaTab) // her own pages are in nobody's way
	other := next(omarTab, "node-b")
	for _, res := range []string{"3/seats", "5/seats", "99/made-later", "/variables"} {
		o.refused(res, other, lenaTab)
	}
	o.release("", lenaTab, group.Token, true)
	o.refused("3/seats", other, lenaTab)
	o.take("5/seats", other)
	o.release("3/seats", lenaTab, page.Token, true)
	o.take("3/seats", other)
}

func TestEventsSayWhoAndWhyInOrder(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	sub := o.rdb.SSubscribe(t.Context(), topicOf(root).Channel)
	defer sub.Close()
	_, err := sub.Receive(t.Context())
	must(t, err)

	l := o.take("3/seats", lenaTab)
	o.release("3/seats", lenaTab, l.Token, true)
	o.take("/variables", lenaTab)
	o.detach(lenaTab)
	_, err = o.Attach(t.Context(), root, next(lenaTab, "node-b"))
	must(t, err)
	o.seize("", omarTab)
	must(t, o.Revoke(t.Context(), root, omarTab.User))
	want := []string{
		"lock-acquired 3/seats lena-tab-1",
		"lock-released 3/seats lena-tab-1 unlocked",
		"lock-acquired /variables lena-tab-1",
		"lock-detached /variables lena-tab-1",
		"lock-attached /variables lena-tab-1",
		"lock-released /variables lena-tab-1 taken-over",
		"lock-acquired all omar-tab-1",
		"lock-released all omar-tab-1 withdrawn",
	}
	o.wantSaid(want...)

	_, epoch, seq, err := o.Locks(t.Context(), root)
	if err != nil || seq != int64(len(want)) || epoch == "" {
		t.Errorf("the list stands at %q %d (%v), want event %d", epoch, seq, err, len(want))
	}
	for i, e := range history(t, o.rdb, root) {
		m, err := sub.ReceiveMessage(t.Context())
		must(t, err)
		var got struct {
			E string
			S int64
			D said
		}
		must(t, json.Unmarshal([]byte(m.Payload), &got))
		got.D.Seq = got.S
		if got.E != epoch || got.D != e || got.S != int64(i+1) {
			t.Errorf("published %+v, want %+v of epoch %s", got, e, epoch)
		}
	}
	if name := history(t, o.rdb, root)[0].By.Name; name != lenaTab.Name {
		t.Errorf("the name came out as %s", name)
	}
	for _, e := range o.rdb.XRange(t.Context(), topicOf(root).Stream, "-", "+").Val() {
		if strings.Contains(e.Values["d"].(string), lenaTab.ID) {
			t.Errorf("%v tells a session's id, which is a secret", e.Values)
		}
	}
}

func TestTakeOverOfTheGroupTakesEveryPage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a, b := o.take("3/seats", lenaTab), o.take("4/seats", lenaTwo)
	o.seize("", omarTab)
	o.release("3/seats", lenaTab, a.Token, false)
	o.release("4/seats", lenaTwo, b.Token, false)
	lost, err := o.Renew(t.Context(), root, "node-a", []lockmgr.SessionRef{{ID: lenaTab.ID, Gen: 1}, {ID: lenaTwo.ID, Gen: 1}})
	if err != nil || len(lost) != 2 {
		t.Errorf("renewed %v %v, want both to have lost", lost, err)
	}
	if got := o.seize("4/seats", lenaTwo); got.Token <= b.Token {
		t.Errorf("token %d after %d", got.Token, b.Token)
	}
	if locks, _, _, _ := o.Locks(t.Context(), root); len(locks) != 1 {
		t.Errorf("locks %+v, want one page", locks)
	}
}

func TestRenewalTellsApartWhoLostAmongMany(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	const n = 1203 // more than one batch, and an odd rest
	var refs []lockmgr.SessionRef
	var want []string
	for i := range n {
		s := lockmgr.Session{ID: fmt.Sprint("tab ", i), Gen: 1, Node: "n", User: "u", Name: "Lena"}
		if i%7 == 0 {
			want = append(want, s.ID)
		} else {
			o.take(fmt.Sprint(i, "/seats"), s)
		}
		refs = append(refs, lockmgr.SessionRef{ID: s.ID, Gen: 1})
	}
	lost, err := o.Renew(t.Context(), root, "n", refs)
	if err != nil || !slices.Equal(lost, want) {
		t.Errorf("lost %d %v, want %d", len(lost), err, len(want))
	}
	if lost, err = o.Renew(t.Context(), root, "n", nil); err != nil || lost != nil {
		t.Errorf("nobody renews: %v %v", lost, err)
	}
}

func TestReleaseOfALockThatIsGoneIsToldApart(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	l := o.take("3/seats", lenaTab)
	o.release("3/seats", omarTab, l.Token, false)
	o.release("3/seats", lenaTab, l.Token-1, false)
	o.release("4/seats", lenaTab, l.Token, false)
	if again := o.take("3/seats", lenaTab); again.Token != l.Token || !again.Since.Equal(l.Since) {
		t.Errorf("a lock asked for twice is %+v, was %+v", again, l)
	}
	o.release("3/seats", lenaTab, l.Token, true)
	o.release("3/seats", lenaTab, l.Token, false)
	o.wantEmpty(root)
}

func TestWhoEditsNothingLosesTheLock(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	const idle = 500 * time.Millisecond
	o.take("3/seats", lenaTab)
	busy := o.take("4/seats", omarTab)
	waitFor(t, "the idle lock to go", func() bool {
		must(t, o.Touch(t.Context(), root, omarTab.ID))
		next, err := o.Sweep(t.Context(), root, idle)
		must(t, err)
		if next < 0 || next > idle {
			t.Fatalf("next sweep in %v, want at most %v", next, idle)
		}
		return len(o.said(root)) == 3
	})
	o.wantSaid("lock-acquired 3/seats lena-tab-1", "lock-acquired 4/seats omar-tab-1", "lock-released 3/seats lena-tab-1 idle")
	locks, _, _, err := o.Locks(t.Context(), root)
	if err != nil || len(locks) != 1 || !locks[0].ActiveAt.After(busy.Since) || locks[0].Token != 0 {
		t.Errorf("locks %+v %v, want the busy one, without its token", locks, err)
	}
	o.take("3/seats", lenaTab) // idle is not closed
}

func TestOddNamesAreRefused(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for _, res := range []string{"3", "3/", "/", "3/a/b", `3/"`, "3/a b", "\x00/a", "3/" + strings.Repeat("a", 200)} {
		if _, err := o.Acquire(t.Context(), root, res, lenaTab, false); !errors.Is(err, lockmgr.ErrInvalid) {
			t.Errorf("%q: %v, want ErrInvalid", res, err)
		}
	}
	for _, s := range []lockmgr.Session{{}, {ID: "x", Node: "n"}, {ID: "x", Gen: 1}, {ID: "x", Gen: 1, Node: "a b"}, {ID: "x", Gen: 1 << 53, Node: "n"}} {
		if _, err := o.Acquire(t.Context(), root, "", s, false); !errors.Is(err, lockmgr.ErrInvalid) {
			t.Errorf("%+v: %v, want ErrInvalid", s, err)
		}
	}
}

func TestEveryKeyOfARootSharesASlotAndIsDeclared(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.take("3/seats", lenaTab)
	o.detach(lenaTab)
	for _, key := range o.keys() {
		if !strings.HasPrefix(key, topicOf(root).Tag+":") {
			t.Errorf("key %s is outside the root's tag", key)
		}
	}
	info := o.rdb.Info(t.Context(), "commandstats").Val()
	for _, scan := range []string{"cmdstat_keys:calls=2", "cmdstat_scan"} {
		if strings.Contains(info, scan) {
			t.Errorf("a scan of Redis: %s", scan)
		}
	}
}

func TestAKeyThatRedisThrewAwayBlocksNobody(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for _, name := range []string{"locks", "index", "sessions", "due", "active", "token"} {
		o.take("3/seats", lenaTab)
		_, before, _, err := o.Locks(t.Context(), root)
		must(t, err)
		must(t, o.rdb.Del(t.Context(), topicOf(root).Tag+":lk:"+name).Err())
		locks, after, seq, err := o.Locks(t.Context(), root)
		if name == "token" { // its next is greater all the same
			if err != nil || len(locks) != 1 || after != before {
				t.Errorf("without %s: %v %v %s %s", name, locks, err, before, after)
			}
			continue
		}
		if err != nil || len(locks) > 0 || after == before || seq != 0 {
			t.Errorf("without %s: %v at %s %d, was %s, %v", name, locks, after, seq, before, err)
		}
		o.take("", omarTab)
		o.end(omarTab)
		o.end(lenaTab)
		omarTab, lenaTab := next(omarTab, "n"), next(lenaTab, "n")
		o.take("3/seats", lenaTab)
		o.refused("", omarTab, lenaTab)
		must(t, o.rdb.FlushAll(t.Context()).Err())
	}
}

func TestNothingIsLeftWhenEveryNodeIsDead(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.Shorten(time.Minute, time.Minute, time.Minute, 100*time.Millisecond)
	o.take("3/seats", lenaTab)
	o.take("", lenaTab)
	o.detach(lenaTab)
	o.end(omarTab)
	waitFor(t, "Redis to forget", func() bool { return len(o.keys()) == 0 })
}
