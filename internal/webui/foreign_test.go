package webui_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"seatfence/internal/browsertest"
	"seatfence/seats"
)

// TestPagesKeepToTheirPolicy opens the pages of a purchase and of staff with a listener for what their policy forbids.
func TestPagesKeepToTheirPolicy(t *testing.T) {
	s := open(t, nil).withStream(t)
	tab := browsertest.Open(t).Tab("about:blank")
	tab.Before("document.addEventListener('securitypolicyviolation', e => (window.broken ??= []).push(e.effectiveDirective + ' ' + e.blockedURI))")
	keeps := func() {
		t.Helper()
		var broken []string
		tab.Eval("window.broken ?? []", &broken)
		if len(broken) > 0 {
			var at string
			tab.Eval("location.pathname", &at)
			t.Errorf("%s: %q", at, broken)
		}
	}
	for _, path := range []string{"/", s.eventPath(), s.eventPath() + "/areas", "/staff/sign-in", "/nothing", "/docs", s.stalls()} {
		tab.Go(s.url + path)
		keeps()
	}
	tab.Wait("document.querySelector('input[name=session]')?.value")
	tab.Eval(fmt.Sprintf("document.querySelector(`[data-seat='%d'] input`).click()", 1), nil)
	tab.Eval("document.querySelector('.bar .next').click()", nil)
	holdShown(t, tab)
	keeps()
	// The listener hears what is forbidden.
	tab.Eval("document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">')", nil)
	tab.Wait("window.broken?.length > 0")
}

// TestPagesOfAnotherSiteAreRefused has a browser that holds seats visit a page that sends forms, opens sockets and shows our pages in frames.
func TestPagesOfAnotherSiteAreRefused(t *testing.T) {
	s := open(t, nil).withStream(t)
	var target string
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<form method="post" target="_self" action="`+target+`"><button>x</button></form><iframe src="`+s.url+`/"></iframe>`)
	}))
	t.Cleanup(evil.Close)
	tab := browsertest.Open(t).Tab(s.url + s.stalls())
	tab.Wait("document.querySelector('input[name=session]')?.value")
	tab.Eval("document.querySelector(`[data-seat='1'] input`).click()", nil)
	tab.Eval("document.querySelector('.bar .next').click()", nil)
	id := holdShown(t, tab)

	target = s.url + "/holds/" + id.String() + "/release"
	tab.Go(evil.URL)
	var said string
	tab.Eval(fmt.Sprintf("new Promise(r => { const ws = new WebSocket('ws%s/v1/stream'); ws.onopen = () => r('open'); ws.onerror = () => r('refused') })", s.url[len("http"):]), &said)
	if said != "refused" {
		t.Errorf("a socket of another site with our cookie: %s", said)
	}
	for _, c := range []string{
		fmt.Sprintf("fetch('%s/v1/holds/%s', {credentials: 'include'})", s.url, id),
		fmt.Sprintf("fetch('%s/v1/holds/%s', {method: 'DELETE', credentials: 'include'})", s.url, id),
		fmt.Sprintf("fetch('%s/v1/events', {credentials: 'include'})", s.url),
		fmt.Sprintf("fetch('%s/v1/stream/tickets', {method: 'POST', credentials: 'include'})", s.url),
	} {
		if tab.Eval(c+".then(r => 'read ' + r.status, () => 'refused')", &said); said != "refused" {
			t.Errorf("%s of another site: %s", c, said)
		}
	}
	tab.Wait("document.querySelector('iframe').contentDocument === null")
	if shown := tab.Frames(); len(shown) != 1 || shown[0] != "chrome-error://chromewebdata/" {
		t.Errorf("a frame shows %q", shown)
	}
	tab.Eval("document.querySelector('button').click()", nil)
	tab.Wait("location.href.startsWith('" + s.url + "')")
	tab.Wait("document.body.innerText.includes('This form came from another site')")
	if s.state(t, seats.ID(1)) != seats.Held {
		t.Error("a form of another site has released a hold")
	}
}
