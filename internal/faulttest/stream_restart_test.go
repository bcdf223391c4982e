package faulttest

import (
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"seatfence/realtime"
	"seatfence/seats"
)

// guest is a tab, where it is connected and what it looks at.
type guest struct {
	*tab
	at   *server
	sees string
}

// move goes to another server when the tab's own asks for it.
func (g *guest) move(to *server) error {
	g.mu.Lock()
	drained, closed := g.drained, g.closed
	g.mu.Unlock()
	select {
	case wait := <-drained:
		select {
		case <-time.After(wait):
			g.away()
		case <-closed: // it took too long for the server
		}
	case <-closed:
	}
	if err := g.connect(to.addr); err != nil {
		return err
	}
	g.at = to
	return g.view(g.sees)
}

// Every node is restarted in its turn. Who is asked to go comes back on another: nobody is ever shown as gone, no lock is released, and the
// fence that an editor had still saves.
func TestStreamOfNodesThatAreRestartedInTurn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	event := s.events(t, 1)[0]
	room, live := "configurator:"+event, "event:"+event
	servers := []*server{s.serve(t), s.serve(t), s.serve(t)}
	editors, named, buyers := s.editors(t, 9), s.editors(t, 9), s.buyers(t, 30)
	var guests []*guest
	come := func(tabs []*tab, sees string) {
		for i, b := range tabs {
			g := &guest{tab: b, at: servers[i%len(servers)], sees: sees}
			connect(t, g.at.addr, []*tab{b}, func(int) []string { return []string{sees} })
			guests = append(guests, g)
		}
	}
	come(editors, room)
	come(named, room)
	come(buyers, live)
	locks := map[string]string{}
	for i, e := range editors {
		p := pageOf(event, i)
		if err := e.lock(p); err != nil {
			t.Fatal(err)
		}
		locks[p.key()] = e.name
	}
	const holds = 6
	for i := range holds {
		buyers[i].hold(t, servers[0], event, seatOf(i))
	}
	exact := func() bool {
		for _, b := range guests[:len(editors)+len(named)] {
			if !b.tab.sees(room, names(editors, named), locks) {
				return false
			}
		}
		return buyers[0].count(live) == len(buyers)
	}
	waitFor(t, "all to be seen", exact)
	tokens := s.rdb.HGetAll(t.Context(), lockKeys(event)).Val()

	for i, old := range servers {
		servers[i] = s.serve(t)
		var moves sync.WaitGroup
		for j, g := range guests {
			if g.at == old {
				moves.Go(func() {
					if err := g.move(servers[(i+1+j%2)%len(servers)]); err != nil {
						t.Error(err)
					}
				})
			}
		}
		old.stop(t)
		moves.Wait()
		waitFor(t, "all to be seen after a restart", exact)
		for j, e := range editors {
			if status := e.save(t, servers[j%len(servers)], pageOf(event, j)); status != http.StatusOK {
				t.Errorf("restart %d: editor %d is answered %d when saving with the fence of the beginning", i, j, status)
			}
		}
	}
	if now := s.rdb.HGetAll(t.Context(), lockKeys(event)).Val(); len(tokens) != len(editors) || !maps.Equal(now, tokens) {
		t.Errorf("the locks were %v and are %v", tokens, now)
	}
	_, events, _, _ := realtime.TopicKeys(room)
	for _, e := range s.rdb.XRange(t.Context(), events, "-", "+").Val() {
		if text := e.Values["d"].(string); strings.Contains(text, "viewer-left") || strings.Contains(text, "lock-released") {
			t.Errorf("the others were told %s", text)
		}
	}
	waitFor(t, "the pages of all holds to be back", func() bool {
		all, gone := s.gonePages(t)
		return all == holds && gone == 0
	})
	for i := range holds {
		if state := buyers[holds].seat(live, seats.ID(i+1)); state != 1 {
			t.Errorf("seat %d is shown as %d, but is held", i+1, state)
		}
	}
}

// lockKeys is where Redis has an event's locks: who has which, with their tokens.
func lockKeys(event string) string {
	_, _, _, prefix := realtime.TopicKeys("configurator:" + event)
	return prefix + ":lk:locks"
}
