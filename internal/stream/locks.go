package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"seatfence/booking"
	"seatfence/lockmgr"
	"seatfence/realtime"
)

// lock answers lock-configurator and lock-item-subresource.
func (r *room) lock(ctx context.Context, x *realtime.Session, t target, req request) error {
	who := whoOf(x)
	if !who.Editor {
		return &problem{code: codeForbidden, detail: "your role does not edit plans"}
	}
	m, covered, own := r.before(x, t)
	if m == nil {
		return &problem{code: codeInvalid, detail: "view the configurator first"}
	}
	if covered > 0 {
		r.locked(x, t, req, covered)
		return nil
	}
	lock, err := r.srv.edits.Acquire(ctx, r.topic, t.resource, sessionOf(x, who), req.TakeOver)
	if errors.Is(err, lockmgr.ErrSessionClosed) {
		x.Close(realtime.CloseReplaced, "this session is connected anew")
		return nil
	}
	if err == nil && !whoOf(x).Editor { // since the question, and perhaps before there was a lock to revoke
		_, err = r.srv.edits.Release(ctx, r.topic, t.resource, x.ID, lock.Token)
		err = cmp.Or(err, booking.ErrForbidden)
	}
	if err != nil {
		return err
	}
	if fence := r.fenceOf(m, t, lock.Token); fence > 0 {
		r.locked(x, t, req, fence)
		return nil
	}
	// Whoever has the lease gets the fence. One whose lease ended in between has the newer fence all the same: leases are a courtesy.
	fence, err := r.srv.Booking.TakeEdit(ctx, who.Caller, r.event, t.item, t.page)
	if err != nil {
		_, releasing := r.srv.edits.Release(ctx, r.topic, t.resource, x.ID, lock.Token)
		r.srv.failed(releasing)
		return err
	}
	r.mu.Lock()
	m.held[t.resource] = &held{token: lock.Token, fence: fence, active: time.Now()}
	r.mu.Unlock()
	r.drop(ctx, x, m, own)
	r.locked(x, t, req, fence)
	return nil
}

// before returns the session's member, the fence of the whole configurator if it has that and asks for a part, and the parts that it has if it
// asks for the whole.
func (r *room) before(x *realtime.Session, t target) (m *member, covered int64, own map[string]*held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m = r.members[x.ID]; m == nil {
		return nil, 0, nil
	}
	if whole := m.held[""]; whole != nil && t.resource != "" {
		return m, whole.fence, nil
	}
	own = map[string]*held{}
	if t.resource == "" {
		for resource, h := range m.held {
			if resource != "" {
				own[resource] = h
			}
		}
	}
	return m, 0, own
}

// drop gives the parts back of a session that has got the whole, which has them all. One that stays ends with its session.
func (r *room) drop(ctx context.Context, x *realtime.Session, m *member, parts map[string]*held) {
	for resource, h := range parts {
		r.mu.Lock()
		delete(m.held, resource)
		r.mu.Unlock()
		_, err := r.srv.edits.Release(ctx, r.topic, resource, x.ID, h.token)
		r.srv.failed(err)
	}
}

// fenceOf returns the fence of a lock that the session had already; 0 if it is a new one.
func (r *room) fenceOf(m *member, t target, token int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := m.held[t.resource]; h != nil && h.token == token {
		return h.fence
	}
	return 0
}

// locked answers whoever has got a lock.
func (r *room) locked(x *realtime.Session, t target, req request, fence int64) {
	x.SendJSON(struct {
		Type     string `json:"type"`
		ID       *int64 `json:"id,omitempty"`
		Resource string `json:"resource"`
		Item     string `json:"item"`
		Page     string `json:"page"`
		Fence    int64  `json:"fence"`
	}{"locked", req.ID, r.topic, req.Item, t.page, fence})
}

// unlock answers unlock-configurator and unlock-item-subresource.
func (r *room) unlock(ctx context.Context, x *realtime.Session, t target, req request) error {
	r.mu.Lock()
	var token int64
	if m := r.members[x.ID]; m != nil && m.held[t.resource] != nil {
		token = m.held[t.resource].token
		delete(m.held, t.resource)
	}
	r.mu.Unlock()
	if token == 0 {
		return &problem{code: codeNotHeld, detail: "this page does not have that lock"}
	}
	released, err := r.srv.edits.Release(ctx, r.topic, t.resource, x.ID, token)
	if err != nil {
		return err
	}
	if !released {
		return &problem{code: codeNotHeld, detail: "this page does not have that lock any more"}
	}
	x.SendJSON(okFrame{"ok", req.ID})
	return nil
}

// touch notes that somebody really edits.
func (r *room) touch(ctx context.Context, x *realtime.Session) error {
	r.mu.Lock()
	if m := r.members[x.ID]; m != nil {
		for _, h := range m.held {
			h.active, h.warned = time.Now(), false
		}
	}
	r.mu.Unlock()
	return r.srv.edits.Touch(ctx, r.topic, x.ID)
}

// sweep ends the leases and graces that are over, in the rooms of this node, whoever's they were.
func (s *Server) sweep(ctx context.Context) error {
	s.closeRooms()
	var errs []error
	for _, r := range s.openRooms() {
		now := time.Now()
		r.mu.Lock()
		due := !now.Before(r.due)
		r.mu.Unlock()
		if !due {
			continue
		}
		next, err := s.edits.Sweep(ctx, r.topic, s.idle)
		if err == nil {
			_, err = s.roster.Renew(ctx, r.topic, nil)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if next < 0 || next > sweepMost {
			next = sweepMost
		}
		r.mu.Lock()
		r.due = now.Add(next)
		r.mu.Unlock()
		r.warnIdle(now)
	}
	return errors.Join(errs...)
}

// warnIdle warns who has a lock and does not edit.
func (r *room) warnIdle(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.members {
		for resource, h := range m.held {
			if m.gone || h.warned || now.Sub(h.active) < r.srv.idle/2 {
				continue
			}
			h.warned = true
			item, page := split(resource)
			m.session.SendJSON(struct {
				Type     string  `json:"type"`
				Resource string  `json:"resource"`
				Item     string  `json:"item"`
				Page     string  `json:"page"`
				Seconds  float64 `json:"seconds"`
			}{"idle-warning", r.topic, item, page, (r.srv.idle - now.Sub(h.active)).Round(time.Second).Seconds()})
		}
	}
}

// renew says of the sessions of this node that they are here, and tells those whose locks are gone.
func (s *Server) renew(ctx context.Context) error {
	var errs []error
	for _, r := range s.openRooms() {
		if err := r.renew(ctx); err != nil {
			errs = append(errs, fmt.Errorf("renew %s: %w", r.topic, err))
		}
	}
	return errors.Join(errs...)
}

func (r *room) renew(ctx context.Context) error {
	var refs []lockmgr.SessionRef
	var visits []realtime.Visit
	had := map[string]map[string]*held{}
	r.mu.Lock()
	for id, m := range r.members {
		if m.gone {
			continue
		}
		visits = append(visits, visitOf(m.session, whoOf(m.session)))
		if len(m.held) > 0 {
			refs = append(refs, lockmgr.SessionRef{ID: id, Gen: m.session.Gen})
			had[id] = maps.Clone(m.held)
		}
	}
	r.mu.Unlock()
	if len(visits) == 0 {
		return nil
	}
	var lost []string
	var err error
	if len(refs) > 0 {
		if lost, err = r.srv.edits.Renew(ctx, r.topic, r.srv.Node.String(), refs); err != nil {
			return err
		}
	}
	r.mu.Lock()
	for _, ref := range refs {
		// What a session has got since, or has kept as a newer generation, is not meant.
		if m := r.members[ref.ID]; m != nil && !m.gone && m.session.Gen == ref.Gen && slices.Contains(lost, ref.ID) {
			r.lose(m, had[ref.ID], func(string) (string, *person) { return lockmgr.WhyExpired, nil })
		}
	}
	r.mu.Unlock()
	missing, err := r.srv.roster.Renew(ctx, r.topic, visits)
	if err != nil {
		return err
	}
	for _, v := range visits {
		if !slices.Contains(missing, v.ID) {
			continue
		}
		if _, err := r.srv.roster.View(ctx, r.topic, v); err != nil && !errors.Is(err, realtime.ErrEnded) {
			return err
		}
	}
	return nil
}

// changed notes what somebody may now, and takes the locks of those who may not edit any more. Who may not know of an event any more that they
// look at has to go.
func (s *Server) changed(ctx context.Context, x *realtime.Session, before *Who, who Who) {
	x.Principal.Data.(*identity).Store(&who)
	for _, r := range s.openRooms() {
		r.mu.Lock()
		m := r.members[x.ID]
		if m != nil && before.Editor != who.Editor {
			can := m.mayEdit(x, r.locks)
			x.SendJSON(news{Type: "can-edit", Resource: r.topic, CanEdit: &can})
		}
		r.mu.Unlock()
		switch {
		case m == nil:
		case who.Caller.Events != nil && !slices.Contains(who.Caller.Events, r.event):
			x.Close(realtime.CloseForbidden, "this event is not yours any more")
		case before.Editor && !who.Editor:
			s.failed(s.edits.Revoke(ctx, r.topic, who.ID))
		}
	}
}
