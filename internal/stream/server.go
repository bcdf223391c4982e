// Package stream is what the frames of the stream mean (docs/protocol.md): live seat maps, configurators with their locks, and pages that show
// holds. It joins the sockets of realtime, the leases of lockmgr and the truth of booking, and owns the loops that keep the three together.
//
// Nothing here decides who has a seat or whose save counts: that is booking's. What a frame asks for, a person waits for; what a loop does may
// fail, and is done again.
package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seatfence/booking"
	"seatfence/lockmgr"
	"seatfence/realtime"
	"seatfence/seats"
)

const (
	publishEvery = 100 * time.Millisecond
	topsEvery    = 500 * time.Millisecond
	ghostsEvery  = time.Second
	pagesEvery   = 200 * time.Millisecond
	rightsEvery  = 5 * time.Second
	drainSpread  = 5 * time.Second
	callTime     = 5 * time.Second // of one round of a loop, and of one frame
	logEvery     = 10 * time.Second
)

// Deps are what the stream stands on. All are needed.
type Deps struct {
	Booking   *booking.Service
	Redis     redis.UniversalClient // with the patience of seconds
	Node      uuid.UUID             // of this process, new each time that it starts
	Key       []byte                // signs tickets and sessions; the same on all nodes
	Origins   []string              // whose pages may connect; the first is our own
	HoldGrace time.Duration         // after which a hold without a page is given back
	Log       *slog.Logger
}

// ErrSignIn says that a credential is not good any more.
var ErrSignIn = errors.New("sign in again")

// Who is somebody who connects.
type Who struct {
	Caller booking.Caller // for everything but holds
	Buyer  booking.Caller // whose holds the page may show
	Kind   string         // with ID: who a page session belongs to, and what the others see of a user
	ID     string
	Name   string
	Editor bool // may edit plans
	Cookie bool // known by a cookie: the page has to be ours
	// Page is set for nobody in particular on a partner's page, who may look at seat maps of the organizer's events and do nothing else.
	Page *Page
	// Again looks anew who it is: ErrSignIn if the credential is not good any more.
	Again func(ctx context.Context) (Who, error)
}

// Page is whose seat maps a partner's page shows, and where it is from.
type Page struct {
	Organizer int64
	Origin    string
}

// Server is the stream of one node.
type Server struct {
	Deps
	Tickets *Tickets

	hub    *realtime.Hub
	bus    *realtime.Bus
	edits  *lockmgr.Edits
	roster *realtime.Roster
	pages  pages
	quiet  quiet
	kept   time.Duration // is for how long a map is kept that nobody looks at
	idle   time.Duration // without an edit, a lock ends; its holder is warned at half of that

	ctx    context.Context
	cancel context.CancelFunc
	wait   sync.WaitGroup

	mu    sync.Mutex
	maps  map[seats.EventID]*seatMap
	rooms map[seats.EventID]*room
}

// identity is who a connection belongs to. Loops look at it too, and it may change.
type identity struct{ atomic.Pointer[Who] }

func whoOf(x *realtime.Session) *Who { return x.Principal.Data.(*identity).Load() }

// client is a page session, over its generations on this node.
type client struct {
	rooms map[seats.EventID]*room // of the session's calls alone
}

// New returns a stream that takes connections. It is live from Start on. The caller owes a Stop.
func New(d Deps) (*Server, error) {
	s := &Server{Deps: d, kept: mapKept, idle: idleLimit, maps: map[seats.EventID]*seatMap{}, rooms: map[seats.EventID]*room{}}
	var err error
	if s.Tickets, err = NewTickets(d.Key, d.Redis); err != nil {
		return nil, err
	}
	if s.hub, err = realtime.New(realtime.Config{Node: d.Node.String(), Key: d.Key, Origins: d.Origins, Log: d.Log}, s); err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.bus = realtime.NewBus(d.Redis, d.Log)
	s.roster = realtime.NewRoster(d.Redis, d.Node.String())
	s.edits = lockmgr.NewEdits(d.Redis, func(root string) lockmgr.Topic {
		meta, stream, channel, prefix := realtime.TopicKeys(root)
		return lockmgr.Topic{Meta: meta, Stream: stream, Channel: channel, Tag: prefix}
	})
	return s, nil
}

// Start begins the loops that keep sockets, Redis and Postgres together.
func (s *Server) Start() {
	for _, l := range []struct {
		every time.Duration
		do    func(context.Context) error
	}{
		{publishEvery, s.publish},
		{topsEvery, s.compareTops},
		{realtime.CountEvery, s.count},
		{lockmgr.EditSweepEvery, s.sweep},
		{lockmgr.EditRenewEvery, s.renew},
		{rightsEvery, s.lookAgain},
		{pagesEvery, s.tellPages},
		{booking.BeatEvery, s.beat},
		{ghostsEvery, s.releaseGhosts},
	} {
		s.wait.Go(func() { s.loop(l.every, l.do) })
	}
}

// loop does something again and again until the server stops. What fails is logged, and done again. It begins at once: a node that ends before
// its first beat is nobody whose death could be noticed, and whoever was connected to it would hold seats until their time is over.
func (s *Server) loop(every time.Duration, do func(context.Context) error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		ctx, cancel := context.WithTimeout(s.ctx, callTime)
		err := do(ctx)
		cancel()
		s.failed(err)
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// failed logs what went wrong in a loop, the same thing only now and then.
func (s *Server) failed(err error) {
	if err != nil && s.ctx.Err() == nil && s.quiet.pass(err.Error()) {
		s.Log.Warn("stream", "error", err)
	}
}

// quiet keeps a fault that lasts from filling the log.
type quiet struct {
	mu   sync.Mutex
	said map[string]time.Time
}

func (q *quiet) pass(text string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if now.Sub(q.said[text]) < logEvery {
		return false
	}
	if len(q.said) > 100 || q.said == nil {
		q.said = map[string]time.Time{}
	}
	q.said[text] = now
	return true
}

// Connect upgrades the request of somebody who is known, and returns. An error of realtime was not answered yet.
func (s *Server) Connect(w http.ResponseWriter, r *http.Request, who Who) error {
	id := &identity{}
	id.Store(&who)
	p := realtime.Principal{Kind: who.Kind, ID: who.ID, Name: who.Name, Cookie: who.Cookie, Data: id}
	if who.Page != nil {
		p.Origin = who.Page.Origin
	}
	return s.hub.Serve(w, r, p)
}

// Stats returns the figures of the sockets.
func (s *Server) Stats() realtime.Stats { return s.hub.Stats() }

// Drain asks everybody to go to another node, and refuses who comes.
func (s *Server) Drain(ctx context.Context) { s.hub.Drain(ctx, drainSpread) }

// Stop closes all sockets, whose sessions may go on elsewhere, and ends the loops. It may be called twice.
func (s *Server) Stop(ctx context.Context) {
	s.hub.Stop(ctx)
	if s.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
		defer cancel()
		s.failed(s.tellPages(ctx))
		s.failed(s.Booking.Leave(ctx, s.Node))
	}
	s.cancel()
	s.bus.Stop() // it begins what is waited for
	s.wait.Wait()
}

// Open begins a session.
func (s *Server) Open(x *realtime.Session) {
	x.Data = &client{rooms: map[seats.EventID]*room{}}
}

// Attached goes on with a session: it looks at nothing yet, but has its locks.
func (s *Server) Attached(x, before *realtime.Session) {
	s.Open(x)
	if before != nil {
		x.Data.(*client).rooms = before.Data.(*client).rooms // where it has locks, and is still shown
	}
	s.pages.back(x)
}

// Detached says that the connection of a session is gone.
func (s *Server) Detached(x *realtime.Session) {
	c := x.Data.(*client)
	for _, r := range c.rooms {
		r.detached(x)
	}
	s.pages.gone(x)
}

// Closed ends a session.
func (s *Server) Closed(x *realtime.Session, why string) {
	c := x.Data.(*client)
	for _, r := range c.rooms {
		r.ended(x, why)
	}
	s.pages.gone(x)
}

// lookAgain ends the sockets of those who are not known any more, and what those may not any more who are. Buyers have nothing to lose.
func (s *Server) lookAgain(ctx context.Context) error {
	var errs []error
	for _, x := range s.hub.Sessions() {
		said := whoOf(x)
		if said.Caller.Kind != booking.Organizer {
			continue
		}
		who, err := said.Again(ctx)
		switch {
		case errors.Is(err, ErrSignIn), err == nil && (who.Kind != said.Kind || who.ID != said.ID):
			x.Close(realtime.CloseSignIn, "sign in again")
		case err != nil:
			errs = append(errs, fmt.Errorf("look who is connected: %w", err))
		default:
			who.Buyer, who.Cookie, who.Again = said.Buyer, said.Cookie, said.Again
			s.changed(ctx, x, said, who)
		}
	}
	return errors.Join(errs...)
}
