package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"seatfence/lockmgr"
	"seatfence/realtime"
)

// event is what the scripts and Saved write into the stream of a configurator.
type event struct {
	Type     string `json:"type"`
	Resource struct {
		Item string `json:"item"`
		Page string `json:"page"`
	} `json:"resource"`
	By       *person      `json:"by"`
	Session  string       `json:"session_hash"`
	Why      string       `json:"why"`
	Token    int64        `json:"token"` // of a lock that was released
	Viewer   *viewerShown `json:"viewer"`
	Revision int64        `json:"revision"`
}

// news is an event as the clients get it.
type news struct {
	Type     string       `json:"type"`
	Resource string       `json:"resource"`
	Epoch    string       `json:"epoch,omitempty"`
	Seq      int64        `json:"seq,omitempty"`
	Viewer   *viewerShown `json:"viewer,omitempty"`
	Item     *string      `json:"item,omitempty"`
	Page     *string      `json:"page,omitempty"`
	By       *person      `json:"by,omitempty"`
	Why      string       `json:"why,omitempty"`
	Revision int64        `json:"revision,omitempty"`
	CanEdit  *bool        `json:"canEdit,omitempty"`
	Fence    int64        `json:"fence,omitempty"`
}

// Message tells everybody in the room an event, in its turn.
func (r *room) Message(epoch string, seq int64, data json.RawMessage) {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		r.srv.failed(fmt.Errorf("event of a configurator: %w", err))
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := news{Type: e.Type, Resource: r.topic, Epoch: epoch, Seq: seq, Viewer: e.Viewer, By: e.By, Why: e.Why, Revision: e.Revision}
	if e.Viewer != nil {
		e.Viewer.Editing = editing(r.locks, e.Viewer.User)
		if e.Type == "viewer-left" {
			delete(r.viewers, e.Viewer.User)
		} else {
			r.viewers[e.Viewer.User] = true
		}
		r.hub.Send(seq, func(*realtime.Session) []byte { return encode(n) })
		return
	}
	n.Item, n.Page = &e.Resource.Item, &e.Resource.Page
	before := e.By != nil && editing(r.locks, e.By.User)
	r.hear(e)
	r.tell(seq, n)
	if e.By != nil && r.viewers[e.By.User] && before != editing(r.locks, e.By.User) {
		changed := encode(news{Type: "viewer-changed", Resource: r.topic, Viewer: &viewerShown{e.By.User, e.By.Name, !before}})
		r.hub.Send(seq, func(*realtime.Session) []byte { return changed })
	}
}

// tell sends news, each member with its own canEdit. mu is held.
func (r *room) tell(seq int64, n news) {
	var texts [2][]byte
	r.hub.Send(seq, func(x *realtime.Session) []byte {
		m := r.members[x.ID]
		if m == nil {
			return nil
		}
		can, i := m.mayEdit(x, r.locks), 0
		if can {
			i = 1
		}
		if texts[i] == nil {
			n.CanEdit = &can
			texts[i] = encode(n)
		}
		return texts[i]
	})
}

// hear notes what an event says of locks, and tells those of this node who have lost theirs. mu is held.
func (r *room) hear(e event) {
	resource := ""
	if e.Resource.Page != "" {
		resource = e.Resource.Item + "/" + e.Resource.Page
	}
	switch e.Type {
	case "lock-acquired":
		r.locks[resource] = holder{session: e.Session, by: *e.By}
		for _, o := range r.ousted {
			r.lost(o.member, o.item, o.page, lockmgr.WhyTakenOver, e.By)
		}
		r.ousted = nil
	case "lock-detached", "lock-attached":
		if h, ok := r.locks[resource]; ok {
			h.detached = e.Type == "lock-detached"
			r.locks[resource] = h
		}
	case "lock-released":
		delete(r.locks, resource)
		for _, m := range r.members {
			h := m.held[resource]
			if m.hash != e.Session || h == nil || h.token > e.Token || e.Why == lockmgr.WhyUnlocked {
				continue // not meant, or it was taken again since
			}
			delete(m.held, resource)
			if e.Why == lockmgr.WhyTakenOver {
				r.ousted = append(r.ousted, ousted{m, resource, e.Resource.Item, e.Resource.Page})
			} else {
				r.lost(m, e.Resource.Item, e.Resource.Page, e.Why, nil)
			}
		}
	}
}

// lost tells a session that a lock of its is gone.
func (r *room) lost(m *member, item, page, why string, by *person) {
	if !m.gone {
		m.session.SendJSON(news{Type: "lock-lost", Resource: r.topic, Item: &item, Page: &page, Why: why, By: by})
	}
}

// lose takes locks from a session if it still has them, and tells it why. mu is held.
func (r *room) lose(m *member, locks map[string]*held, why func(resource string) (string, *person)) {
	for resource, h := range locks {
		if m.held[resource] == h {
			delete(m.held, resource)
			item, page := split(resource)
			reason, by := why(resource)
			r.lost(m, item, page, reason, by)
		}
	}
}

// Lost says that events are missing: everybody is shown the state anew.
func (r *room) Lost() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refreshing {
		return
	}
	r.refreshing, r.following = true, false
	r.srv.wait.Go(r.refresh)
}

// refresh reads the room's state until it has it, and shows it to all.
func (r *room) refresh() {
	for r.srv.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(r.srv.ctx, callTime)
		err := r.readAgain(ctx)
		cancel()
		r.srv.failed(err)
		if err == nil {
			return
		}
		select {
		case <-time.After(againWait):
		case <-r.srv.ctx.Done():
		}
	}
}

func (r *room) readAgain(ctx context.Context) error {
	list := r.here()
	for _, m := range list {
		_, err := r.srv.roster.View(ctx, r.topic, visitOf(m.x, whoOf(m.x)))
		if err != nil && !errors.Is(err, realtime.ErrEnded) {
			return err
		}
	}
	present, err := r.srv.roster.Viewers(ctx, r.topic)
	if err != nil {
		return err
	}
	locks, _, _, err := r.srv.edits.Locks(ctx, r.topic)
	if err != nil {
		return err
	}
	for _, m := range list {
		if err := r.hub.Join(m.x); err != nil {
			return err
		}
	}
	r.mu.Lock()
	r.refreshing, r.following, r.locks, r.viewers = false, true, holders(locks), users(present)
	r.srv.bus.Follow(r.topic, present.Epoch, present.Seq)
	r.ousted = nil
	for _, m := range list { // the events that would have told it are lost
		maps.DeleteFunc(m.had, func(resource string, _ *held) bool { return r.locks[resource].session == m.hash })
		r.lose(m.member, m.had, func(resource string) (string, *person) {
			if h, taken := r.locks[resource]; taken {
				return lockmgr.WhyTakenOver, &h.by
			}
			return lockmgr.WhyExpired, nil
		})
	}
	r.mu.Unlock()
	for _, m := range list {
		r.show(m.x, m.member, nil, present, locks)
	}
	return nil
}

// seen is a member as it was: who it was and what it had may change at any time.
type seen struct {
	*member
	x   *realtime.Session
	had map[string]*held
}

// catchUp shows the state to those who were told too much at once, when they have read what they were sent.
func (r *room) catchUp(ctx context.Context) error {
	late := r.hub.Late()
	if len(late) == 0 {
		return nil
	}
	present, err := r.srv.roster.Viewers(ctx, r.topic)
	if err != nil {
		return err
	}
	locks, _, _, err := r.srv.edits.Locks(ctx, r.topic)
	if err != nil {
		return err
	}
	for _, x := range late {
		r.mu.Lock()
		m := r.members[x.ID]
		r.mu.Unlock()
		if m != nil && m.session == x {
			r.show(x, m, nil, present, locks)
		}
	}
	return nil
}

// here returns the members that are connected.
func (r *room) here() (list []seen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.members {
		if !m.gone {
			list = append(list, seen{m, m.session, maps.Clone(m.held)})
		}
	}
	return list
}
