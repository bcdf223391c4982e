package webui_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/internal/browsertest"
	"seatfence/seats"
)

// withPeer puts a peer of the stream before the pages of a site.
func (s site) withPeer(t *testing.T) *peer {
	t.Helper()
	p := &peer{t: t, come: make(chan *line, 16)}
	target, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	upgrader := websocket.Upgrader{}
	mux := http.NewServeMux()
	mux.Handle("/", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}})
	mux.HandleFunc("/v1/stream", func(w http.ResponseWriter, r *http.Request) {
		if conn, err := upgrader.Upgrade(w, r, nil); err == nil {
			p.come <- &line{t, conn}
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

const (
	pageOne = "AAAAAAAAAAAAAAAAAAAAAA.1.6f1c2a52-3f1e-4f0b-8f43-0d8d5b6f7a11"
	pageTwo = "AAAAAAAAAAAAAAAAAAAAAA.2.6f1c2a52-3f1e-4f0b-8f43-0d8d5b6f7a11"
)

func (l *line) welcomes(session string) *line {
	return l.says(frame{"type": "welcome", "session": session, "token": "t", "resumed": true, "ping_seconds": 4, "server_time": "2026-05-01T19:30:00Z"})
}

func (l *line) saysView(s site, states string) {
	l.t.Helper()
	asked := l.gets("view-resource")
	l.says(frame{"type": "view", "id": asked["id"], "resource": "event:" + s.Event.String(), "epoch": "a", "seq": 1, "first": 1, "states": states, "areas": []any{[]any{Floor, 30}}})
}

func (l *line) saysSeats(s site, seq int, cells ...any) {
	l.t.Helper()
	l.says(frame{"type": "seats", "resource": "event:" + s.Event.String(), "epoch": "a", "from": seq - 1, "seq": seq, "cells": cells})
}

var houseFree = strings.Repeat("AAAA", 10) // 120 seats

// holdShown is the hold whose page the tab shows.
func holdShown(t *testing.T, tab *browsertest.Tab) booking.HoldID {
	t.Helper()
	tab.Wait("location.pathname.startsWith('/holds/hld_') || location.pathname.startsWith('/holds/h')")
	var path string
	tab.Eval("location.pathname", &path)
	id, err := booking.ParseHoldID(strings.TrimPrefix(path, "/holds/"))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return id
}

func TestSeatsOfAnOpenPageTurnTakenAndFree(t *testing.T) {
	s := open(t, nil)
	p := s.withPeer(t)
	tab := browsertest.Open(t).Tab(p.url + s.stalls())
	tab.Narrow(390)
	l, _ := p.accept()
	l.welcomes(pageOne).saysView(s, houseFree)
	tab.Wait("document.querySelector('input[name=session]').value === '" + pageOne + "'")
	tab.Eval("for (const id of [53, 54, 55, 56]) document.querySelector(`[data-seat='${id}'] input`).click()", nil)

	l.saysSeats(s, 2, []any{54, 1, 2, 1777664520000}, []any{55, 2, 2}, []any{57, 3, 2})
	tab.Wait("document.querySelectorAll('.seat.held[data-seat], .seat.booked[data-seat], .seat.blocked[data-seat]').length === 3")
	if said := tab.Text(".news"); said != "Someone is buying C14 right now. If they don't finish, it comes back at 21:42. C15 was just bought by someone else. They are no longer ticked." {
		t.Errorf("the page says %q", said)
	}
	tab.Wait("[54, 55, 57].every(id => { const box = document.querySelector(`[data-seat='${id}'] input`); return box.disabled && !box.checked })")
	tab.Wait("document.querySelector(\"[data-seat='55'] .hidden\").textContent.endsWith(', sold') && document.querySelector(\"[data-seat='57'] small\").textContent === 'closed'")
	l.saysSeats(s, 3, []any{54, 0, 3})
	tab.Wait("!document.querySelector(\"[data-seat='54'] input\").disabled && document.querySelector(\"[data-seat='54'] .hidden\").textContent.endsWith('free')")
	l.says(frame{"type": "viewers", "resource": "event:" + s.Event.String(), "count": 123})
	tab.Wait("document.body.innerText.includes('123 people are looking.')")
	tab.Wait("document.documentElement.scrollWidth <= 390")

	tab.Eval("document.querySelector('.bar .next').click()", nil)
	id := holdShown(t, tab)
	var page string
	if err := s.Pool.QueryRow(t.Context(), "SELECT session FROM hold_pages WHERE hold_id = $1", id.Key).Scan(&page); err != nil {
		t.Fatalf("the hold knows no page: %v", err)
	}
	l, token := p.accept()
	l.welcomes(pageTwo).gets("leave-resource") // the seats are not shown any more
	if shown := l.gets("show-hold"); token != "t" || shown["hold"] != id.String() {
		t.Errorf("the hold's page brings %q and shows %v", token, shown["hold"])
	}
	if s.state(t, seats.ID(53)) != seats.Held || s.state(t, seats.ID(56)) != seats.Held || s.state(t, Seat14C) != seats.Free {
		t.Error("held are other seats than those that stayed ticked")
	}
}

func TestPlacesLeftOfAnAreaFollow(t *testing.T) {
	s := open(t, nil)
	p := s.withPeer(t)
	tab := browsertest.Open(t).Tab(p.url + s.eventPath())
	l, _ := p.accept()
	l.welcomes(pageOne).saysView(s, houseFree)
	l.saysSeats(s, 2, []any{"a", Floor, 3})
	tab.Wait("document.body.innerText.includes('3 of 30 left.') && document.querySelector('[data-most]').max === '3'")
	l.saysSeats(s, 3, []any{"a", Floor, 0})
	tab.Wait("document.body.innerText.includes('None left.')")
	_ = l.conn.NetConn().Close()
	l, _ = p.accept()
	l.welcomes(pageTwo)
	if again := l.gets("view-resource"); again["seq"] != 3.0 {
		t.Errorf("asks for what came after %v", again)
	}
}

func TestWhoComesBackTooLateGetsTheSeatsThatAreStillFree(t *testing.T) {
	s := open(t, nil)
	p := s.withPeer(t)
	tab := browsertest.Open(t).Tab(p.url + s.stalls())
	tab.Eval("for (const id of [54, 55]) document.querySelector(`[data-seat='${id}'] input`).click()", nil)
	tab.Eval("document.querySelector('.bar .next').click()", nil)
	id := holdShown(t, tab)
	var l *line
	for shown := (frame{}); shown["type"] != "show-hold"; { // the page of seats has connected too
		l, _ = p.accept()
		l.welcomes(pageOne)
		for err := error(nil); err == nil && shown["type"] != "show-hold"; {
			err = l.conn.ReadJSON(&shown)
		}
	}
	l.says(frame{"type": "ok", "id": 1})
	var buyer uuid.UUID
	if err := s.Pool.QueryRow(t.Context(), "SELECT buyer FROM holds WHERE id = $1", id.Key).Scan(&buyer); err != nil {
		t.Fatal(err)
	}
	if err := s.Service.Release(t.Context(), booking.Caller{Kind: booking.Buyer, ID: buyer}, id); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Book(t.Context(), Buyer(), seats.ID(55)); err != nil {
		t.Fatal(err)
	}
	tab.Eval("{ const now = Date.now; Date.now = () => now() + 3600_000; null }", nil) // an hour of sleep
	_ = l.conn.NetConn().Close()
	l, _ = p.accept()
	l.welcomes(pageTwo)
	shown := l.gets("show-hold")
	l.says(frame{"type": "error", "id": shown["id"], "code": "not_held", "detail": "it has ended"})
	for range 2 { // the page of the ended hold, and that of the new one
		l, _ = p.accept()
		l.welcomes(pageTwo)
	}
	tab.Wait("document.querySelector('.news')?.innerText === 'While you were away your seats were given back. C15 has gone to someone else. The others are yours again.'")
	if again := holdShown(t, tab); again == id || s.state(t, Seat14C) != seats.Held {
		t.Errorf("hold %v after %v, C14 is %v", again, id, s.state(t, Seat14C))
	}
}
