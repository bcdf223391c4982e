package stream

import (
	"context"
	"errors"
	"sync"
	"time"

	"seatfence/booking"
	"seatfence/realtime"
)

const (
	maxPages = 1000 // that one statement tells of
	// onceMore is when a page that went is told of again: its request for a hold may have been on its way, and has come by then.
	onceMore = 5 * time.Second
)

// pages are connections that came or went and were not told to booking yet: it wants to know, because a hold lives while a page shows it.
type pages struct {
	mu          sync.Mutex
	went, cames []booking.Page
	again       []departed // the oldest first
}

type departed struct {
	page booking.Page
	at   time.Time
}

func pageOf(x *realtime.Session) booking.Page {
	page, err := booking.ParsePage(x.Name())
	if err != nil {
		panic("stream: a session has no name of a page: " + x.Name()) // it is our own
	}
	return page
}

func (p *pages) gone(x *realtime.Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.went = append(p.went, pageOf(x))
	p.again = append(p.again, departed{pageOf(x), time.Now()})
}

func (p *pages) back(x *realtime.Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cames = append(p.cames, pageOf(x))
}

func (p *pages) take() (went, cames []booking.Page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.again) && time.Since(p.again[n].at) >= onceMore {
		p.went = append(p.went, p.again[n].page)
		n++
	}
	p.again = p.again[n:]
	went, cames = p.went, p.cames
	p.went, p.cames = nil, nil
	return went, cames
}

func (p *pages) putBack(went, cames []booking.Page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.went, p.cames = append(went, p.went...), append(cames, p.cames...)
}

// tellPages tells booking which pages came and went. Each means one connection, so that the order does not matter.
func (s *Server) tellPages(ctx context.Context) error {
	went, cames := s.pages.take()
	for len(went) > 0 || len(cames) > 0 {
		n, m := min(len(went), maxPages), min(len(cames), maxPages)
		if err := errors.Join(some(ctx, s.Booking.PagesBack, cames[:m]), some(ctx, s.Booking.PagesGone, went[:n])); err != nil {
			s.pages.putBack(went, cames)
			return err
		}
		went, cames = went[n:], cames[m:]
	}
	return nil
}

func some(ctx context.Context, tell func(context.Context, []booking.Page) error, list []booking.Page) error {
	if len(list) == 0 {
		return nil
	}
	return tell(ctx, list)
}

// beat says that this node lives, and looks who does not. A node that was taken for dead says which pages it still has.
func (s *Server) beat(ctx context.Context) error {
	fresh, err := s.Booking.Beat(ctx, s.Node)
	if err != nil {
		return err
	}
	if fresh {
		for _, x := range s.hub.Sessions() {
			s.pages.back(x)
		}
	}
	dead, err := s.Booking.DeadNodes(ctx, s.Node)
	if len(dead) > 0 {
		s.Log.Warn("nodes are dead: the grace of their pages begins", "nodes", dead)
	}
	return err
}

// showHold notes that a page shows a hold.
func (s *Server) showHold(ctx context.Context, x *realtime.Session, req request) error {
	id, err := booking.ParseHoldID(req.Hold)
	if err != nil {
		return booking.ErrNotFound
	}
	if err := s.Booking.ShowHold(ctx, whoOf(x).Buyer, id, pageOf(x)); err != nil {
		return err
	}
	x.SendJSON(okFrame{"ok", req.ID})
	return nil
}

// releaseGhosts gives back the holds whose pages have gone.
func (s *Server) releaseGhosts(ctx context.Context) error {
	_, err := s.Booking.ReleaseGhosts(ctx, s.HoldGrace)
	return err
}
