package stream

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"seatfence/booking"
	"seatfence/lockmgr"
	"seatfence/realtime"
	"seatfence/seats"
)

// Codes of errors.
const (
	codeBadFrame    = "bad_frame"
	codeUnknownType = "unknown_type"
	codeInvalid     = "invalid"
	codeNotFound    = "not_found"
	codeForbidden   = "forbidden"
	codeLocked      = "locked"
	codeNotHeld     = "not_held"
	codeTooMany     = "too_many"
	codeUnavailable = "unavailable"
)

// request is a frame of the client's, of any type.
type request struct {
	ID           *int64 `json:"id"`
	Resource     string `json:"resource"`
	Epoch        string `json:"epoch"`
	Seq          int64  `json:"seq"`
	Configurator string `json:"configurator"`
	Item         string `json:"item"`
	Page         string `json:"page"`
	TakeOver     bool   `json:"take_over"`
	Hold         string `json:"hold"`
}

// problem is an error as a frame tells it.
type problem struct {
	code, detail string
	by           *person
	retry        float64 // seconds; 0 for no use
}

func (p *problem) Error() string { return p.code + ": " + p.detail }

// person is a holder of a lock as frames show it.
type person struct {
	User string `json:"user"`
	Name string `json:"name"`
	Own  bool   `json:"own_other_tab,omitempty"`
}

type errorFrame struct {
	Type   string  `json:"type"`
	ID     *int64  `json:"id,omitempty"`
	Code   string  `json:"code"`
	Detail string  `json:"detail"`
	By     *person `json:"by,omitempty"`
	Retry  float64 `json:"retry_after,omitempty"`
}

type okFrame struct {
	Type string `json:"type"`
	ID   *int64 `json:"id,omitempty"`
}

// Frame answers a frame of a client's.
func (s *Server) Frame(x *realtime.Session, kind string, frame []byte) {
	ctx, cancel := context.WithTimeout(s.ctx, callTime)
	defer cancel()
	var req request
	err := json.Unmarshal(frame, &req)
	if err != nil {
		err = &problem{code: codeBadFrame, detail: "a member has another type than it should"}
	} else {
		err = s.handle(ctx, x, kind, req)
	}
	if err != nil {
		p := s.problemOf(err)
		x.SendJSON(errorFrame{"error", req.ID, p.code, p.detail, p.by, p.retry})
	}
}

// handle does what a frame asks for. Without an error it has answered.
func (s *Server) handle(ctx context.Context, x *realtime.Session, kind string, req request) error {
	c := x.Data.(*client)
	if whoOf(x).Page != nil && kind != "view-resource" && kind != "leave-resource" {
		return booking.ErrForbidden
	}
	switch kind {
	case "view-resource", "leave-resource":
		event, ofMap, err := resourceOf(req.Resource)
		switch {
		case err != nil:
			return err
		case kind == "leave-resource":
			s.leave(x, c, event, ofMap)
			x.SendJSON(okFrame{"ok", req.ID})
			return nil
		case ofMap:
			return s.viewMap(ctx, x, event, req)
		}
		return s.viewRoom(ctx, x, c, event, req)
	case "lock-configurator", "unlock-configurator", "lock-item-subresource", "unlock-item-subresource", "activity":
		r, target, err := c.target(kind, req)
		switch {
		case err != nil:
			return err
		case kind == "activity":
			return r.touch(ctx, x)
		case strings.HasPrefix(kind, "lock"):
			return r.lock(ctx, x, target, req)
		}
		return r.unlock(ctx, x, target, req)
	case "show-hold":
		return s.showHold(ctx, x, req)
	}
	return &problem{code: codeUnknownType, detail: "there is no such frame"}
}

// resourceOf reads event:… or configurator:….
func resourceOf(text string) (event seats.EventID, ofMap bool, err error) {
	kind, id, _ := strings.Cut(text, ":")
	if kind != "event" && kind != "configurator" {
		return 0, false, &problem{code: codeInvalid, detail: "a resource is event:<event> or configurator:<event>"}
	}
	if event, err = seats.ParseEventID(id); err != nil {
		return 0, false, booking.ErrNotFound
	}
	return event, kind == "event", nil
}

// target is what is locked.
type target struct {
	item     int32
	page     string // "" for all of it
	resource string // as lockmgr names it
}

// target returns the room of a configurator that the client looks at, and what of it a frame is about.
func (c *client) target(kind string, req request) (*room, target, error) {
	event, err := seats.ParseEventID(req.Configurator)
	if err != nil {
		return nil, target{}, booking.ErrNotFound
	}
	r := c.rooms[event]
	if r == nil {
		return nil, target{}, &problem{code: codeInvalid, detail: "view the configurator first"}
	}
	if !strings.HasSuffix(kind, "item-subresource") {
		return r, target{}, nil
	}
	t := target{page: req.Page, resource: req.Item + "/" + req.Page}
	item, err := strconv.ParseInt(req.Item, 10, 32)
	if req.Item != "" && (err != nil || item < 1 || strconv.FormatInt(item, 10) != req.Item) || req.Page == "" {
		return nil, target{}, &problem{code: codeInvalid, detail: "an item is a number, and a page has a name"}
	}
	t.item = int32(item)
	return r, t, nil
}

// problemOf is what the client is told of an error.
func (s *Server) problemOf(err error) *problem {
	var (
		p       *problem
		held    *lockmgr.HeldError
		invalid *booking.InvalidError
	)
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &held):
		return &problem{code: codeLocked, detail: held.By.Name + " has it", by: &person{held.By.User, held.By.Name, held.OwnOtherTab}}
	case errors.Is(err, lockmgr.ErrInvalid):
		return &problem{code: codeInvalid, detail: "no such page"}
	case errors.Is(err, booking.ErrNotFound), errors.Is(err, booking.ErrHoldClosed), errors.Is(err, booking.ErrHoldExpired):
		return &problem{code: codeNotFound, detail: "there is no such thing, or it is not yours"}
	case errors.Is(err, booking.ErrNoPlan):
		return &problem{code: codeInvalid, detail: "the event was not made of a plan: there is nothing to edit"}
	case errors.Is(err, booking.ErrForbidden):
		return &problem{code: codeForbidden, detail: "you may not do this"}
	case errors.Is(err, realtime.ErrTooMany):
		return &problem{code: codeTooMany, detail: err.Error()}
	case errors.As(err, &invalid):
		return &problem{code: codeInvalid, detail: invalid.Detail}
	}
	if !errors.Is(err, context.Canceled) {
		s.failed(err)
	}
	return &problem{code: codeUnavailable, detail: "try again in a moment", retry: 1}
}

// leave has a session look at a resource no more.
func (s *Server) leave(x *realtime.Session, c *client, event seats.EventID, ofMap bool) {
	if ofMap {
		if m := s.mapOf(event); m != nil {
			m.board.Leave(x)
		}
		return
	}
	if r := c.rooms[event]; r != nil {
		r.hub.Leave(x)
		r.left(x)
		delete(c.rooms, event)
		x.Watch(len(c.rooms) > 0)
	}
}
