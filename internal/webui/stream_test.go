package webui_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/labstack/echo/v4"

	"seatfence/internal/browsertest"
	"seatfence/internal/webui"
)

// peer is a server of the stream that says exactly what a test has it say.
type peer struct {
	t    *testing.T
	url  string
	come chan *line
}

// line is one connection to a peer.
type line struct {
	t    *testing.T
	conn *websocket.Conn
}

type frame = map[string]any

const seatMap = "event:7"

// newPeer serves the client's module and, at "/", a page that has a stream.
func newPeer(t *testing.T) *peer {
	t.Helper()
	t.Parallel()
	p := &peer{t: t, come: make(chan *line, 16)}
	e := echo.New()
	webui.New(webui.Deps{}).Register(e)
	e.GET("/page", func(c echo.Context) error {
		return c.HTML(http.StatusOK, `<!doctype html><title>A page</title><script type="module" src="/page.js"></script>`)
	})
	e.GET("/page.js", func(c echo.Context) error {
		return c.Blob(http.StatusOK, "text/javascript", []byte(`
			import {connect} from "/static/seatfence.js"
			window.log = []
			window.stream = connect()
			for (const type of ["open", "down", "end", "lock-lost", "lock-kept"]) stream.on(type, e => log.push({type, ...e}))
			if (location.hash === "#7") stream.viewConfigurator(7, () => {})
			window.said = type => log.findLast(e => e.type === type)`))
	})
	upgrader := websocket.Upgrader{}
	e.GET("/v1/stream", func(c echo.Context) error {
		conn, err := upgrader.Upgrade(c.Response(), c.Request(), nil)
		if err == nil {
			p.come <- &line{t, conn}
		}
		return err
	})
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	p.url = server.URL + "/page"
	return p
}

// accept takes the next connection and its hello, and returns the token that it brought.
func (p *peer) accept() (l *line, token string) {
	p.t.Helper()
	select {
	case l = <-p.come:
	case <-time.After(browsertest.Within):
		p.t.Fatal("nobody connects")
	}
	hello := l.gets("hello")
	if hello["protocol"] != 1.0 {
		p.t.Errorf("protocol %v", hello["protocol"])
	}
	token, _ = hello["token"].(string)
	return l, token
}

func (l *line) welcome(token string, resumed bool) *line {
	l.t.Helper()
	return l.says(frame{
		"type": "welcome", "session": "s." + token, "token": token, "resumed": resumed, "ping_seconds": 4,
		"server_time": time.Now().Add(time.Hour).Format(time.RFC3339Nano),
	})
}

func (l *line) says(f frame) *line {
	l.t.Helper()
	if err := l.conn.WriteJSON(f); err != nil {
		l.t.Fatal(err)
	}
	return l
}

// gets is the next frame of the client, which has to be of the type.
func (l *line) gets(kind string) (f frame) {
	l.t.Helper()
	if err := l.conn.SetReadDeadline(time.Now().Add(browsertest.Within)); err != nil {
		l.t.Fatal(err)
	}
	if err := l.conn.ReadJSON(&f); err != nil {
		l.t.Fatalf("waiting for %s: %v", kind, err)
	}
	if f["type"] != kind {
		l.t.Fatalf("client says %v, want %s", f, kind)
	}
	return f
}

// over waits until the client has closed.
func (l *line) over() {
	l.t.Helper()
	_ = l.conn.SetReadDeadline(time.Now().Add(browsertest.Within))
	if _, _, err := l.conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseNoStatusReceived, websocket.CloseGoingAway) {
		l.t.Fatalf("client did not close: %v", err)
	}
	_ = l.conn.Close()
}

func (l *line) close(code int) {
	l.t.Helper()
	_ = l.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
	_ = l.conn.Close()
}

// view answers a view-resource with 8 seats, of which those in states are not free: 2 bits each, low bits first.
func (l *line) view(epoch string, seq int, states string) frame {
	l.t.Helper()
	asked := l.gets("view-resource")
	l.says(frame{
		"type": "view", "id": asked["id"], "resource": seatMap, "epoch": epoch, "seq": seq, "first": 1, "states": states,
		"held": []any{[]any{1764579000000, 2}}, "areas": []any{[]any{1, 480}}, "server_time": time.Now().Format(time.RFC3339Nano),
	})
	return asked
}

func (l *line) delta(epoch string, from, seq int, cells ...any) {
	l.t.Helper()
	l.says(frame{"type": "seats", "resource": seatMap, "epoch": epoch, "from": from, "seq": seq, "cells": cells})
}

const (
	someHeld = "BDA=" // seat 2 held, seat 7 blocked
	allFree  = "AAA="
	watch    = `window.changes = []; window.map = stream.viewMap(7, c => changes.push(c)); null`
)

func TestAMapFollowsTheStreamAndAsksWhenItMissesSomething(t *testing.T) {
	p := newPeer(t)
	tab := browsertest.Open(t).Tab(p.url)
	l, token := p.accept()
	if token != "" {
		t.Errorf("a first page brings token %q", token)
	}
	l.welcome("one", false)
	tab.Wait("stream.connected && stream.session === 's.one' && stream.now() - Date.now() > 3500000")
	tab.Eval(watch, nil)
	if asked := l.view("a", 10, someHeld); asked["epoch"] != nil {
		t.Errorf("asks for what came after %v", asked)
	}
	tab.Wait("changes[0]?.all && map.states.join('') === '01000030' && map.heldUntil.get(2) === 1764579000000 && map.areas.get(1) === 480")

	l.delta("a", 10, 12, []any{2, 2, 5}, []any{3, 1, 5, 1764579600000}, []any{"a", 1, 478})
	tab.Wait("map.states.join('') === '02100030' && map.heldUntil.get(3) === 1764579600000 && !map.heldUntil.has(2) && map.areas.get(1) === 478")
	tab.Wait("changes.at(-1).seats.join() === '2,3' && changes.at(-1).areas.join() === '1'")
	l.delta("a", 9, 11, []any{2, 0, 4}) // late, and older
	l.says(frame{"type": "viewers", "resource": seatMap, "count": 312})
	l.says(frame{"type": "news-of-a-later-version", "resource": seatMap})
	tab.Wait("map.viewers === 312 && map.state(2) === 2 && map.state(99) === 3")

	l.delta("a", 14, 15, []any{4, 2, 6}) // 13 and 14 are missing
	asked := l.gets("view-resource")
	if asked["epoch"] != "a" || asked["seq"] != 12.0 {
		t.Errorf("asks for what came after %v", asked)
	}
	l.delta("a", 15, 16, []any{5, 2, 6}) // while it is being answered: no second question
	l.says(frame{"type": "seats", "id": asked["id"], "resource": seatMap, "epoch": "a", "from": 12, "seq": 16, "cells": []any{[]any{4, 2, 6}, []any{5, 2, 6}}})
	tab.Wait("map.states.join('') === '02122030' && map.seq === 16")

	l.delta("b", 1, 2, []any{1, 2, 7}) // another count of the server: it begins anew
	l.view("b", 2, allFree)
	tab.Wait("changes.at(-1).all && map.states.join('') === '00000000' && map.epoch === 'b'")
	tab.Eval("map.close()", nil)
	l.gets("leave-resource")
}

func TestADrainingServerIsLeftForAsLongAsItSays(t *testing.T) {
	p := newPeer(t)
	tab := browsertest.Open(t).Tab(p.url)
	l, _ := p.accept()
	l.welcome("one", false)
	tab.Wait("stream.connected")
	tab.Eval(watch, nil)
	l.view("a", 10, someHeld)
	tab.Wait("map.seq === 10")
	tab.Eval("window.answer = stream.showHold('h_1').catch(e => e.code); null", nil)
	l.gets("show-hold")
	start := time.Now()
	l.says(frame{"type": "drain", "retry_after": 1.2}).over()
	var code string
	tab.Eval("answer", &code)
	if code != "offline" {
		t.Errorf("what was asked ends with %q", code)
	}
	again, token := p.accept()
	if took := time.Since(start); token != "one" || took < 1100*time.Millisecond || took > 4*time.Second {
		t.Errorf("comes back after %v with token %q", took, token)
	}
	again.welcome("two", true)
	if asked := again.view("a", 11, allFree); asked["epoch"] != "a" || asked["seq"] != 10.0 {
		t.Errorf("asks for what came after %v", asked)
	}
	tab.Wait("map.seq === 11 && said('open').resumed")
}

func TestACutLineIsSoonBackAndAReplacedOneStaysAway(t *testing.T) {
	p := newPeer(t)
	tab := browsertest.Open(t).Tab(p.url)
	l, _ := p.accept()
	l.welcome("one", false)
	tab.Wait("stream.connected")
	_ = l.conn.NetConn().Close()
	l, token := p.accept()
	if token != "one" {
		t.Errorf("comes back with token %q", token)
	}
	l.welcome("one", true)
	tab.Wait("stream.connected")
	l.close(4409)
	tab.Wait("said('end')?.code === 4409")
	tab.Eval("new Promise(r => { dispatchEvent(new Event('online')); setTimeout(r, 1500) })", nil)
	select {
	case <-p.come:
		t.Error("a session that another page has comes back")
	default:
	}
}

func TestAReloadKeepsTheSessionAndADuplicateHasNone(t *testing.T) {
	p := newPeer(t)
	tab := browsertest.Open(t).Tab(p.url + "#7")
	l, _ := p.accept()
	l.welcome("one", false).gets("view-resource")
	tab.Eval("window.locking = stream.lock({configurator: '7', item: '3', page: 'details'}); null", nil)
	asked := l.gets("lock-item-subresource")
	l.says(frame{"type": "locked", "id": asked["id"], "resource": "configurator:7", "item": "3", "page": "details", "fence": 12})
	var fence int
	tab.Eval("locking", &fence)
	if fence != 12 || asked["configurator"] != "7" || asked["item"] != "3" || asked["page"] != "details" {
		t.Errorf("asked %v, fence %d", asked, fence)
	}

	tab.Eval("open('/page') && null", nil) // starts with a copy of the tab's storage, as a duplicate does
	copied, token := p.accept()
	if token != "" {
		t.Errorf("the duplicate of a tab brings its token %q", token)
	}
	copied.welcome("other", false)

	tab.Reload()
	l, token = p.accept()
	if token != "one" {
		t.Fatalf("a reload brings token %q", token)
	}
	l.welcome("one-more", true).gets("view-resource")
	asked = l.gets("lock-item-subresource")
	l.says(frame{"type": "locked", "id": asked["id"], "resource": "configurator:7", "item": "3", "page": "details", "fence": 13})
	tab.Wait("said('lock-kept')?.fence === 13 && stream.fence({configurator: '7', item: '3', page: 'details'}) === 13")

	_ = l.conn.NetConn().Close()
	l, token = p.accept()
	l.welcome("three", false).gets("view-resource") // its session is over
	tab.Wait("said('lock-lost')?.page === 'details' && said('lock-lost').why === 'expired'")
	if token != "one-more" {
		t.Errorf("comes back with token %q", token)
	}

	tab.Eval("stream.lock({configurator: '7'}).catch(e => window.refused = e); null", nil)
	asked = l.gets("lock-configurator")
	l.says(frame{"type": "error", "id": asked["id"], "code": "locked", "detail": "Omar has it", "by": frame{"user": "u_1", "name": "Omar"}})
	tab.Wait("window.refused?.code === 'locked' && refused.by.name === 'Omar'")

	tab.Eval("window.locking = stream.lock({configurator: '7'}); null", nil)
	asked = l.gets("lock-configurator")
	l.says(frame{"type": "locked", "id": asked["id"], "resource": "configurator:7", "item": "", "page": "", "fence": 14})
	tab.Eval("locking", nil)
	tab.Go(p.url) // a page that is about something else
	l, token = p.accept()
	if token != "three" {
		t.Errorf("the next page brings token %q", token)
	}
	l.welcome("four", true).gets("unlock-configurator")
	l.gets("leave-resource")
	tab.Eval("stream.bye()", nil)
	l.gets("bye")
	l.over()
}

func TestAConfiguratorFollowsWhoIsThereAndWhoEdits(t *testing.T) {
	p := newPeer(t)
	tab := browsertest.Open(t).Tab(p.url)
	l, _ := p.accept()
	l.welcome("one", false)
	tab.Wait("stream.connected")
	tab.Eval("window.conf = stream.viewConfigurator(7, () => {}); null", nil)
	const conf = "configurator:7"
	lena, omar := frame{"user": "u_1", "name": "Lena", "isEditing": false}, frame{"user": "u_2", "name": "Omar", "isEditing": true}
	snapshot := func(seq int) {
		asked := l.gets("view-resource")
		l.says(frame{"type": "view", "id": asked["id"], "resource": conf, "epoch": "a", "seq": seq, "viewers": []any{lena}, "lockedBy": nil, "canEdit": true, "locks": []any{}})
	}
	snapshot(5)
	l.says(frame{"type": "viewer-joined", "resource": conf, "seq": 6, "viewer": omar})
	l.says(frame{"type": "lock-acquired", "resource": conf, "seq": 7, "item": "", "page": "", "by": omar, "canEdit": false})
	tab.Wait("conf.viewers.length === 2 && conf.lockedBy?.name === 'Omar' && !conf.canEdit")
	l.says(frame{"type": "lock-released", "resource": conf, "seq": 8, "item": "", "page": "", "by": omar, "why": "left", "canEdit": true})
	l.says(frame{"type": "viewer-left", "resource": conf, "seq": 8, "viewer": lena}) // doubled: ignored
	tab.Wait("conf.viewers.length === 2 && !conf.lockedBy && conf.canEdit && !conf.locks.length")
	l.says(frame{"type": "viewer-left", "resource": conf, "seq": 10, "viewer": lena})
	snapshot(10)
	tab.Wait("conf.seq === 10 && conf.viewers.length === 1")
	tab.Eval("for (let i = 0; i < 5; i++) stream.activity('7')", nil)
	l.gets("activity")
	tab.Eval("stream.bye()", nil)
	l.gets("bye") // and no second activity
}

func TestTheClientIsServedForOtherSitesToo(t *testing.T) {
	p := newPeer(t)
	for path, cache := range map[string]string{"/static/seatfence.js": "public, max-age=300", webui.ScriptPath("seatfence.js"): "public, max-age=31536000, immutable"} {
		resp, err := http.Get(p.url[:len(p.url)-len("/page")] + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		h := resp.Header
		got := []string{h.Get("Content-Type"), h.Get("Cache-Control"), h.Get("Access-Control-Allow-Origin")}
		if !slices.Equal(got, []string{"text/javascript; charset=utf-8", cache, "*"}) || resp.StatusCode != http.StatusOK || h.Get("ETag") == "" {
			t.Errorf("%s: %d %v", path, resp.StatusCode, h)
		}
	}
}

func TestALineThatIsDeadIsNoticedWhenTheTabIsLookedAtAgain(t *testing.T) {
	p := newPeer(t)
	tab := browsertest.Open(t).Tab(p.url)
	l, _ := p.accept()
	l.welcome("one", false)
	tab.Wait("stream.connected")
	tab.Eval("stream.showHold('h_1').catch(() => {}); null", nil)
	l.says(frame{"type": "ok", "id": l.gets("show-hold")["id"]})
	tab.Eval("dispatchEvent(new Event('online'))", nil)
	l.says(frame{"type": "ok", "id": l.gets("show-hold")["id"]}) // alive: nothing happens
	tab.Eval("dispatchEvent(new Event('online'))", nil)
	l.gets("show-hold") // dead: no answer
	again, token := p.accept()
	again.welcome("two", true)
	tab.Wait("stream.session === 's.two'")
	if token != "one" {
		t.Errorf("comes back with token %q", token)
	}
}
