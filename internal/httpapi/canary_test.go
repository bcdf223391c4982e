package httpapi_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"seatfence/internal/httpapi"
)

// TestSecretsAreToldToNobody plants personal data and credentials wherever a request can carry them, on every operation: in requests that
// succeed, in those that are refused, in those that panic, and in those that find no database. None of it is in a refusal, in the log
// or in the metrics.
func TestSecretsAreToldToNobody(t *testing.T) {
	t.Parallel()
	sick := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if c.Request().Header.Get("X-Panic") != "" {
				panic(http.ErrBodyNotAllowed)
			}
			return next(c)
		}
	}
	a := newAPI(t, func(d *httpapi.Deps) { d.Middleware = []echo.MiddlewareFunc{sick} })
	const name, email, card, word = "Canaria Quill", "canaria@quill.example", "4111111111111111", "canary-secret"
	plant := strings.NewReplacer("Lena", name, "lena@example.com", email, "till-7", card, "tab-1", "canary-secret")
	targets := a.targets(a.requests())
	secrets := []string{"Canaria", "anaria@", "quill.example", card, word, "sfs_", "sf_", "sfu_", "Bearer"}
	told := func(got answer) {
		t.Helper()
		for _, secret := range secrets {
			if got.body["code"] == "plan_unreadable" { // quotes the file, for whoever sent it
				continue
			}
			if got.status >= 400 && strings.Contains(string(got.raw), secret) {
				t.Errorf("%s, %d, tells %s: %s", got.what, got.status, secret, got.raw)
			}
		}
	}
	carry := []edit{
		key(word), header("Cookie", "seatfence_session="+word+"; seatfence_staff=sfu_"+word+"; other="+word), header("User-Agent", word), header("Referer", "http://localhost/?"+email),
		header("X-Forwarded-For", email), header("Origin", "http://"+word), header("X-Request-Id", email),
	}
	send := func(x target, path, body string, edits ...edit) {
		t.Helper()
		told(a.do(x.method, path, body, slices.Concat(x.edits(), carry, edits)...))
	}
	// Once refused for each reason there is, then with the database there, then without it.
	for _, x := range targets {
		body := plant.Replace(x.body)
		send(x, x.path()+"?"+word+"="+email, body)
		send(x, x.path()+"/"+email, body)
		send(x, x.path(), `{"x":"`+email+`"}`)
		send(x, x.path(), `{"x":"`+email)
		send(x, x.path(), body, as("sf_"+word))
		send(x, x.path(), body, as("sfs_"+word))
		send(x, x.path(), body, as("sfu_"+word))
		send(x, x.path(), body, header("Authorization", "Basic "+word))
		send(x, x.path(), body, header("Content-Type", word))
		send(x, x.path(), body, key(email+" "))
		if x.op.Responses.Status(500) != nil {
			send(x, x.path(), body, header("X-Panic", word))
		}
		for _, p := range x.query() {
			send(x, x.path()+"?"+p.Name+"="+strings.Repeat(word, 40), body)
		}
		for id := range x.ids {
			send(x, x.pathWith(id, email), body)
		}
		if x.body != "" {
			for _, p := range places(t, body) {
				send(x, x.path(), p.with(`"`+strings.Repeat(word, 40)+`"`))
				send(x, x.path(), p.with(`{"`+p.name+`":"`+email+`"}`))
			}
		}
		told(a.do("LOCK", x.path(), body, slices.Concat(x.edits(), carry)...))
	}
	for _, x := range targets {
		send(x, x.path(), plant.Replace(x.body), key(word+x.op.OperationID))
	}
	a.get("/v1/bookings?email="+email+"&reference="+card, as(a.organizer)).want(200)
	if _, err := a.pool.Exec(context.Background(), "ALTER SCHEMA public RENAME TO gone"); err != nil {
		t.Fatal(err)
	}
	for _, x := range targets {
		got := a.do(x.method, x.path(), plant.Replace(x.body), slices.Concat(x.edits(), carry)...)
		told(got)
		sound := got.body["code"] == "internal" || got.body["code"] == "unavailable" // for a key that is looked up anew
		if leak := leaks.Find(got.raw); got.status >= 500 && (leak != nil || !sound) {
			t.Errorf("%s without tables tells %q: %s", x.name, leak, got.raw)
		}
	}
	kept := a.log.String() + scrape(t, a)
	for _, secret := range secrets {
		if i := strings.Index(kept, secret); i >= 0 {
			t.Errorf("%s is kept: %s", secret, kept[max(0, i-200):min(len(kept), i+100)])
		}
	}
	if !strings.Contains(kept, `"status":500`) || !strings.Contains(kept, "does not exist") {
		t.Error("nothing went wrong without tables")
	}
}
