package webui_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"regexp"
	"testing"
)

// mostFirstLoad is what an event's page may weigh with all that it loads but its plan, in bytes.
const mostFirstLoad = 60 << 10

func TestFirstLoadOfAnEventIsSmall(t *testing.T) {
	s := open(t, nil)
	total := 0
	fetch := func(path string) (content string) {
		t.Helper()
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
		req.Header.Set("Accept-Encoding", "gzip")
		answer, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", path, answer.Status, err)
		}
		total += len(body)
		if answer.Header.Get("Content-Encoding") == "gzip" {
			return unzipped(t, body)
		}
		return string(body)
	}
	page := fetch("/events/" + s.Event.String())
	fetch(regexp.MustCompile(`/assets/page-[0-9a-f]+\.css`).FindString(page))
	first := regexp.MustCompile(`(/static/[0-9a-f]+/)live\.js`).FindStringSubmatch(page)
	loaded := map[string]bool{}
	imports := regexp.MustCompile(`(?:from |import\()"\./([a-z]+\.js)"`)
	var load func(name string)
	load = func(name string) {
		if loaded[name] {
			return
		}
		loaded[name] = true
		content := fetch(first[1] + name)
		if file, err := os.ReadFile("static/" + name); err != nil || string(file) != content {
			t.Errorf("%s is not what was written: %v", name, err)
		}
		for _, m := range imports.FindAllStringSubmatch(content, -1) {
			load(m[1])
		}
	}
	load("live.js")
	if !loaded["preact.js"] || !loaded["seatmap.js"] {
		t.Fatalf("the page loads %v", loaded)
	}
	t.Logf("%d bytes in %d files", total, len(loaded)+2)
	if total > mostFirstLoad {
		t.Errorf("an event's page loads %d bytes", total)
	}
}

func unzipped(t *testing.T, body []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
