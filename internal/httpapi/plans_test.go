package httpapi_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"seatfence/internal/httpapi"
	"seatfence/seats/plan"
)

// cellar is a plan of two seats and an area.
const cellar = `{"format":"seatfence-plan/1","name":"Cellar","categories":[{"name":"Floor"}],"sections":[{"name":"Room","rows":[{"label":"A","seats":[` +
	`{"number":"1","category":"Floor","x":0,"y":0},{"number":"2","category":"Floor","x":1,"y":0}]}]}],"areas":[{"name":"Standing","category":"Floor","capacity":40}]}`

const unreadable = "422 plan_unreadable"

// badFiles are what the import of a plan refuses as its body.
func (x target) badFiles(add adder) {
	add(1, "truncated", cellar[:len(cellar)/2], unreadable)
	add(1, "nothing that is known", "<seats/>", unreadable)
	add(2, "blanks", " \r\n\t", unreadable)
	for _, body := range []string{"[]", "[" + cellar + "]", "{}", `{"a":1}`} {
		add(4, "no plan", body, unreadable)
	}
	add(5, "more behind it", cellar+"{}", unreadable)
	add(23, "deep", strings.Repeat("[", 10_001), unreadable)
	add(23, "deep", strings.Repeat(`{"sections":`, 10_001), unreadable)
	add(24, "a million seats", strings.Replace(theatre, `"rows":2,"seatsPerRow":3`, `"rows":1000,"seatsPerRow":1000`, 1), unreadable)
	add(24, "a million seats, each said", "row,seat\n"+strings.Repeat("A,1\n", 1_000_000), unreadable)
	add(105, "invalid UTF-8", strings.Replace(cellar, "Cellar", "\xe9", 1), unreadable)
	add(20, "too large", strings.Repeat(" ", plan.MaxBytes+1), "413 body_too_large")
	add(21, "too large", strings.Repeat(" ", plan.MaxBytes+1), "413 body_too_large", chunked)
	const refused = "415 unsupported_media_type"
	for _, kind := range []string{"text/plain", "", "json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "*/*", "application/xml"} {
		add(17, kind, cellar, refused, header("Content-Type", kind))
	}
	add(17, "two types", cellar, refused, func(r *http.Request) { r.Header["Content-Type"] = []string{"text/csv", "text/csv"} })
	add(106, "encoded", cellar, refused, header("Content-Encoding", "gzip"))
}

const theatre = `{"schema":{"name":"Theatre"},"sections":[{"name":"Stalls","type":"grid","rows":2,"seatsPerRow":3}]}`

func (a *api) dryRun(file string, edits ...edit) answer {
	a.t.Helper()
	return a.post("/v1/plans?dry_run=true", file, append([]edit{as(a.organizer), key(fmt.Sprint("dry-", a.keys.Add(1))), header("Content-Type", "application/octet-stream")}, edits...)...)
}

// counted is what a report counts, by code.
func (g answer) counted() map[string]int {
	g.t.Helper()
	counts := map[string]int{}
	tallies, _ := g.at("report", "tallies").([]any)
	for i := range tallies {
		counts[g.text("report", "tallies", i, "code")] += g.number("report", "tallies", i, "count")
	}
	return counts
}

func TestEveryDefectOfARealPlanIsReported(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "..", "shared", "plans")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the folder of real plans is not here")
	}
	a := newAPI(t)
	for name, want := range map[string]struct {
		seats, areas int
		defects      string
	}{
		"seatmap-canvas-stadium.pretix.json": {738, 0, "map[duplicate_guid:126 duplicate_label_in_section:126 unused_category:1 wrong_type:2]"},
		"seatmap-pro-theatre.json":           {468, 1, "map[no_capacity:1]"},
		"revel-teatro-grande.csv":            {1352, 0, "map[]"},
	} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got := a.dryRun(string(data)).want(200)
		if seats, areas := got.number("report", "counts", "seats"), got.number("report", "counts", "areas"); seats != want.seats || areas != want.areas {
			t.Errorf("%s has %d seats and %d areas, want %+v", name, seats, areas, want)
		}
		if defects := fmt.Sprint(got.counted()); defects != want.defects {
			t.Errorf("%s has %s, want %s", name, defects, want.defects)
		}
		kept := a.post("/v1/plans?repair=true&venue="+name, string(data), as(a.organizer), key(name)).want(201)
		if seats := kept.number("counts", "seats"); seats != want.seats {
			t.Errorf("%s is kept with %d seats, want %d", name, seats, want.seats)
		}
	}
}

// What is wrong within a file that can be read is a report, of which nothing is kept.
func TestStrangeFilesAreReported(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for name, c := range map[string]struct{ file, defects string }{
		"fine":            {cellar, "map[]"},
		"byte order mark": {"\ufeff" + cellar, "map[]"},
		"huge numbers":    {strings.Replace(cellar, `"x":1`, `"x":1e400`, 1), "map[coordinates_out_of_range:1 overlapping_seats:1]"},
		"NaN":             {"section;row;seat;x;y\nS;A;1;NaN;0\nS;A;2;1;Infinity\n", "map[coordinates_out_of_range:2]"},
		"mixed types":     {strings.NewReplacer(`"number":"1"`, `"number":1`, `"y":0`, `"y":[{}]`).Replace(cellar), "map[wrong_type:3]"},
		"Latin-1":         {"Sektor;Reihe;Platz\nParkett S\xfcd;1;1\n", "map[no_coordinates:1]"},
		"tabs":            {"section\trow\tseat\nS\tA\t1\n", "map[no_coordinates:1]"},
		"nothing to sell": {`{"format":"seatfence-plan/1","name":"","categories":[],"sections":[]}`, "map[no_seats:1]"},
		"truncated":       {cellar[:50], "map[not_readable:1]"},
		"deep":            {`{"zones":` + strings.Repeat("[", 10_001), "map[not_readable:1]"},
		"a million seats": {"row,seat\n" + strings.Repeat("A,1\n", 1_000_000), "map[no_coordinates:1 too_many_seats:1]"},
		"32 MiB":          {strings.Repeat(" ", plan.MaxBytes), "map[not_readable:1]"},
		"32 MiB of lists": {`{"zones":[` + strings.Repeat("[],", (plan.MaxBytes-16)/3) + `[]]}`, "map[no_seats:1 wrong_type:11184806]"},
	} {
		a.unwritten(name, func() {
			start := time.Now()
			got := a.dryRun(c.file).want(200)
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("%s took %s", name, took)
			}
			if defects := fmt.Sprint(got.counted()); defects != c.defects {
				t.Errorf("%s has %s, want %s", name, defects, c.defects)
			}
		})
	}
	raw := "POST /v1/plans HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: raw\r\nContent-Type: text/csv\r\nContent-Length: 104857600\r\n"
	if got := spoken(t, a.url, raw+"Authorization: Bearer "+a.organizer+"\r\n\r\n"); got.status != 413 {
		t.Errorf("100 MB, of which nothing comes: %d", got.status)
	}
	if got := spoken(t, a.url, raw+"Authorization: Bearer "+a.partner+"\r\n\r\n"); got.status != 403 {
		t.Errorf("100 MB of somebody who may not, unread: %d", got.status)
	}
	if got := spoken(t, a.url, strings.Replace(raw, "104857600", "1000", 1)+"\r\n"); got.status != 401 {
		t.Errorf("a file of nobody, unread: %d", got.status)
	}
}

func TestAPlanIsImportedOnceAndReadAsItIs(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	send := func(path, body, k string) answer { return a.post(path, body, as(a.organizer), key(k)) }
	made := send("/v1/plans?venue=Old+Mill&name=Winter", cellar, "p1").want(201)
	if made.number("version") != 1 || made.text("status") != "validated" || made.number("counts", "capacity") != 40 || made.text("report", "format") != plan.Format {
		t.Errorf("made %s", made.raw)
	}
	again := send("/v1/plans?venue=Old+Mill&name=Winter", cellar, "p1").want(201)
	if again.header.Get("Idempotent-Replayed") != "true" || !bytes.Equal(again.raw, made.raw) {
		t.Errorf("replay %v\n%s\n%s", again.header, again.raw, made.raw)
	}
	send("/v1/plans?venue=Old+Mill&name=Summer", cellar, "p1").wantCode(422, "idempotency_key_reused")
	send("/v1/plans?venue=Old+Mill&name=Winter", strings.Replace(cellar, "40", "41", 1), "p1").wantCode(422, "idempotency_key_reused")
	path := "/v1/plans/" + made.text("plan")
	if next := send("/v1/plans?plan="+made.text("plan"), strings.Replace(cellar, "40", "0", 1), "p2").want(201); next.number("version") != 2 || next.text("status") != "draft" {
		t.Errorf("next %s", next.raw)
	}
	a.post(path+"/versions/2/publish", "", as(a.organizer)).wantCode(409, "plan_has_errors")
	if published := a.post(path+"/versions/1/publish", "", as(a.organizer)).want(200); published.text("status") != "published" || published.text("published_at") == "" {
		t.Errorf("published %s", published.raw)
	}
	document := a.get(path+"/versions/1", as(a.organizer)).want(200)
	etag := `"` + made.text("digest") + `"`
	if document.header.Get("ETag") != etag || !strings.HasPrefix(string(document.raw), "{\n \"format\": \"seatfence-plan/1\"") {
		t.Errorf("document %v\n%s", document.header, document.raw)
	}
	if same := a.get(path+"/versions/1", as(a.organizer), header("If-None-Match", `"x", W/`+etag)).want(304); len(same.raw) > 0 || same.header.Get("ETag") != etag {
		t.Errorf("not modified: %v %s", same.header, same.raw)
	}
	if back := send("/v1/plans?venue=New+Mill", string(document.raw), "p3").want(201); back.text("digest") != made.text("digest") {
		t.Errorf("the export comes back as %s", back.raw)
	}
	found := a.get(path, as(a.organizer)).want(200)
	if found.text("name") != "Winter" || found.text("venue") != "Old Mill" || found.number("versions", 0, "version") != 2 || found.text("versions", 1, "status") != "published" {
		t.Errorf("found %s", found.raw)
	}
	first := a.get("/v1/plans?limit=1", as(a.organizer)).want(200)
	if rest := a.get("/v1/plans?cursor="+first.text("next_cursor"), as(a.organizer)).want(200); rest.text("plans", 0, "venue") != "New Mill" || rest.at("next_cursor") != nil {
		t.Errorf("the rest is %s", rest.raw)
	}
	first = a.get("/v1/venues?limit=1", as(a.organizer)).want(200)
	if rest := a.get("/v1/venues?cursor="+first.text("next_cursor"), as(a.organizer)).want(200); first.text("venues", 0, "name") != "Old Mill" || rest.text("venues", 0, "name") != "New Mill" {
		t.Errorf("venues %s %s", first.raw, rest.raw)
	}
	refused := send("/v1/plans", cellar[:100], "p4").wantCode(422, "plan_unreadable")
	if refused.text("report", "defects", 0, "code") != "not_readable" || refused.text("report", "defects", 0, "at") != "1:98" {
		t.Errorf("refused %s", refused.raw)
	}
	send("/v1/plans", "row,seat\nA,1\n", "p5").wantCode(422, "invalid")
}

func TestTwoFilesAreReadAtOnceAndNoMore(t *testing.T) {
	t.Parallel()
	inside, stay := make(chan struct{}, 8), make(chan struct{})
	a := newAPI(t, func(d *httpapi.Deps) {
		d.Middleware = []echo.MiddlewareFunc{func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				if c.Path() == "/v1/plans" {
					inside <- struct{}{}
					<-stay
				}
				return next(c)
			}
		}}
	})
	file := strings.Repeat(" ", plan.MaxBytes)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { a.dryRun(file).want(200) })
		<-inside
	}
	for range 6 {
		if got := a.dryRun(cellar).wantCode(503, "overloaded"); got.header.Get("Retry-After") == "" {
			t.Errorf("no Retry-After: %v", got.header)
		}
	}
	a.get("/v1/plans", as(a.partner)).want(403)
	close(stay)
	wg.Wait()
	a.dryRun(cellar).want(200)
	if len(inside) != 1 {
		t.Errorf("%d more files were let in", len(inside))
	}
}

// A file that stops coming ends with its connection, and gives its place to the next one.
func TestAFileThatBreaksOffLeavesItsPlace(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for range 3 {
		conn := socket(t, a.url)
		_, err := fmt.Fprintf(conn, "POST /v1/plans HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: raw\r\nContent-Type: text/csv\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\n\r\nrow,seat\n", a.organizer)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got := heard(t, conn); got.status != 400 {
			t.Errorf("%d %s", got.status, got.raw)
		}
		_, _ = io.Copy(io.Discard, conn) // until the server has done with it
	}
	a.dryRun(cellar).want(200)
}
