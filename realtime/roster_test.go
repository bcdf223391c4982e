package realtime_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatfence/db/dbtest"
	"seatfence/realtime"
)

// onlooker is what a client of a topic shows: the state that it was given, and the events after it.
type onlooker struct {
	mu      sync.Mutex
	viewers map[string]string
	faults  []string
}

func (s *onlooker) Message(_ string, _ int64, data json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var said struct {
		Type   string
		Viewer realtime.Viewer
	}
	if err := json.Unmarshal(data, &said); err != nil {
		s.faults = append(s.faults, err.Error())
	}
	_, here := s.viewers[said.Viewer.User]
	switch {
	case said.Type == "viewer-joined" && !here:
		s.viewers[said.Viewer.User] = said.Viewer.Name
	case said.Type == "viewer-left" && here:
		delete(s.viewers, said.Viewer.User)
	default:
		s.faults = append(s.faults, string(data))
	}
}

func (s *onlooker) Lost() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, "lost")
}

func (s *onlooker) names() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for user := range s.viewers {
		names = append(names, user)
	}
	slices.Sort(names)
	return strings.Join(append(names, s.faults...), " ")
}

func namesOf(p realtime.Present) string {
	var names []string
	for _, v := range p.Viewers {
		names = append(names, v.User)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// left returns the keys of a topic that have something in them but its events.
func left(t *testing.T, rdb redis.UniversalClient, topic string) (keys []string) {
	t.Helper()
	_, _, _, prefix := realtime.TopicKeys(topic)
	for _, name := range []string{":pr:sessions", ":pr:users", ":pr:due"} {
		if rdb.Exists(t.Context(), prefix+name).Val() > 0 {
			keys = append(keys, name)
		}
	}
	return keys
}

func TestUserOfSeveralTabsIsThereOnce(t *testing.T) {
	t.Parallel()
	rdb := patient(t, dbtest.Redis(t))
	topic := "configurator:tabs"
	r, e, _ := followed(t, rdb, newBus(t, rdb), topic)
	tab := func(id string) realtime.Visit {
		return realtime.Visit{ID: id, Gen: 1, Node: "n1", Viewer: realtime.Viewer{User: "lena", Name: `Lena "the" <b>`}}
	}
	for _, id := range []string{"a", "b", "a"} {
		now, err := r.View(t.Context(), topic, tab(id))
		must(t, err)
		if len(now.Viewers) != 1 || now.Viewers[0] != tab("a").Viewer {
			t.Errorf("the viewers are %+v", now.Viewers)
		}
	}
	must(t, r.Leave(t.Context(), topic, tab("a")))
	must(t, r.Leave(t.Context(), topic, tab("a")))
	now, err := r.Viewers(t.Context(), topic)
	must(t, err)
	if len(now.Viewers) != 1 {
		t.Error("the other tab is gone too")
	}
	must(t, r.End(t.Context(), topic, tab("b")))
	view(t, r, topic, 1) // the last event, so that none is overlooked
	until(t, 5*time.Second, "somebody else is told of", func() bool { return e.told("user-1") })
	if len(e.data) != 3 || !strings.Contains(e.data[0], "joined") || !strings.Contains(e.data[1], "left") {
		t.Errorf("heard %v", e.data)
	}
}

func TestWhatComesLateOfAnOldGenerationChangesNothing(t *testing.T) {
	t.Parallel()
	rdb := patient(t, dbtest.Redis(t))
	ctx, topic := t.Context(), "configurator:late"
	r := realtime.NewRoster(rdb, "n1")
	old, now := visit(1), visit(1)
	now.Gen, now.Node = 2, "n2"
	mustView := func(v realtime.Visit, want error) {
		t.Helper()
		if _, err := r.View(ctx, topic, v); !errors.Is(err, want) {
			t.Fatalf("%v, want %v", err, want)
		}
	}
	mustView(old, nil)
	mustView(now, nil)
	must(t, r.End(ctx, topic, old))
	must(t, r.Detach(ctx, topic, old))
	mustView(old, realtime.ErrEnded)
	if p, err := r.Viewers(ctx, topic); err != nil || len(p.Viewers) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	must(t, r.End(ctx, topic, now))
	mustView(now, realtime.ErrEnded) // was under way when its connection closed
	other := visit(2)
	must(t, r.Detach(ctx, topic, other)) // before its View has come
	mustView(other, realtime.ErrEnded)
	if p, err := r.Viewers(ctx, topic); err != nil || len(p.Viewers) != 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// Sessions come, go, move and die in any order; what a client shows is what there is, and in the end nothing is left.
func TestRosterOfAnyOrderIsWhatItsEventsTell(t *testing.T) {
	t.Parallel()
	rosterInAnyOrder(t, patient(t, dbtest.Redis(t)))
}

func rosterInAnyOrder(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	b := newBus(t, rdb)
	topic := fmt.Sprint("configurator:any-", seed)
	r := realtime.NewRosterFor(rdb, "n1", 300*time.Millisecond, 100*time.Millisecond)
	s := &onlooker{viewers: map[string]string{}}
	b.Listen(topic, true, s)
	now, err := r.Viewers(t.Context(), topic)
	must(t, err)
	b.Follow(topic, now.Epoch, now.Seq)
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(worker)))
			gens := map[string]int64{}
			for range 150 {
				v := visit(random.IntN(4))
				v.ID = fmt.Sprint(v.ID, "-", worker, "-", random.IntN(2)) // two tabs in each worker
				v.Node = fmt.Sprint("n", random.IntN(2))
				if random.IntN(3) == 0 {
					gens[v.ID]++
				}
				v.Gen = gens[v.ID] - int64(random.IntN(2)) + 1 // now and then of the past
				var err error
				switch random.IntN(6) {
				case 0, 1:
					if _, err = r.View(t.Context(), topic, v); errors.Is(err, realtime.ErrEnded) {
						err = nil
					}
				case 2:
					err = r.Leave(t.Context(), topic, v)
				case 3:
					err = r.Detach(t.Context(), topic, v)
				case 4:
					err = r.End(t.Context(), topic, v)
				case 5:
					_, err = r.Renew(t.Context(), topic, []realtime.Visit{v})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	until(t, 10*time.Second, "the client shows what there is, and then nobody", func() bool {
		now, err := r.Viewers(t.Context(), topic)
		must(t, err)
		return namesOf(now) == "" && s.names() == ""
	})
	rosterForgets(t, r, rdb, topic)
}

func rosterForgets(t *testing.T, r *realtime.Roster, rdb redis.UniversalClient, topic string) {
	t.Helper()
	_, _, _, prefix := realtime.TopicKeys(topic)
	for _, key := range rdb.ZRange(t.Context(), prefix+":pr:due", 0, -1).Val() { // what is left are records of the closed
		must(t, rdb.ZAdd(t.Context(), prefix+":pr:due", redis.Z{Score: 1, Member: key}).Err())
	}
	_, err := r.Renew(t.Context(), topic, nil)
	must(t, err)
	if keys := left(t, rdb, topic); len(keys) > 0 {
		t.Errorf("left over: %v", keys)
	}
}

func TestSessionsOfADeadNodeLeaveWithAnEvent(t *testing.T) {
	t.Parallel()
	rdb := patient(t, dbtest.Redis(t))
	topic := "configurator:dead"
	_, e, _ := followed(t, rdb, newBus(t, rdb), topic)
	dead, alive := realtime.NewRosterFor(rdb, "n1", 400*time.Millisecond, time.Second), realtime.NewRosterFor(rdb, "n2", 400*time.Millisecond, time.Second)
	mine := visit(2)
	mine.Node = "n2"
	for r, v := range map[*realtime.Roster]realtime.Visit{dead: visit(1), alive: mine} {
		_, err := r.View(t.Context(), topic, v)
		must(t, err)
	}
	until(t, 5*time.Second, "the dead one's viewer has left", func() bool {
		lost, err := alive.Renew(t.Context(), topic, []realtime.Visit{mine})
		must(t, err)
		if len(lost) > 0 {
			t.Fatal("who is renewed was ended")
		}
		n, _ := e.heard()
		return n == 3
	})
	if !strings.Contains(e.data[2], "left") || !strings.Contains(e.data[2], "user-1") {
		t.Errorf("heard %v", e.data)
	}
	for _, key := range rdb.Keys(t.Context(), "*configurator:dead*").Val() {
		if ttl := rdb.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > time.Minute {
			t.Errorf("%s lives for %v", key, ttl)
		}
	}
}

func TestViewersOfAllNodesAreCounted(t *testing.T) {
	t.Parallel()
	rdb := patient(t, dbtest.Redis(t))
	topic := "event:count"
	one, two := realtime.NewRoster(rdb, "n1"), realtime.NewRoster(rdb, "n2")
	for _, step := range []struct {
		by            *realtime.Roster
		viewers, want int
	}{{one, 3, 3}, {two, 4, 7}, {one, 5, 9}, {two, 0, 5}, {one, 0, 0}} {
		if n, err := step.by.Count(t.Context(), topic, step.viewers); err != nil || n != step.want {
			t.Errorf("%d viewers, %v, want %d", n, err, step.want)
		}
	}
}
