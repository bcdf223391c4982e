package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"seatfence/seats/plan"
)

// badPages are what saves of a draft refuse as their body.
func (x target) badPages(add adder) {
	add(1, "truncated", x.body[:len(x.body)/2], wrong)
	add(1, "XML", "<seats/>", wrong)
	for _, body := range []string{" \r\n\t", "null", "[]", "{}", "1", `"a"`, "[" + x.body + "]"} {
		add(4, "no page", body, wrong)
	}
	add(5, "more behind it", x.body+"{}", wrong)
	add(23, "deep", strings.Repeat("[", 10_001), wrong)
	add(23, "deep", strings.Repeat(`{"sections":`, 10_001), wrong)
	add(20, "too large", strings.Repeat(" ", plan.MaxBytes+1), "413 body_too_large")
	add(21, "too large", strings.Repeat(" ", plan.MaxBytes+1), "413 body_too_large", chunked)
	for _, kind := range []string{"text/plain", "", "json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "*/*", "application/xml"} {
		add(17, kind, x.body, "415 unsupported_media_type", header("Content-Type", kind))
	}
	add(106, "encoded", x.body, "415 unsupported_media_type", header("Content-Encoding", "gzip"))
	for _, fence := range []string{"", "x", "1.5", "9223372036854775808"} {
		add(31, "fence "+fence, x.body, "400 bad_request", header("Edit-Fence", fence))
	}
	for _, fence := range []string{"0", "-1", "2", "9223372036854775807"} {
		add(31, "fence "+fence, x.body, "409 lock_lost", header("Edit-Fence", fence))
	}
	add(31, "no fence", x.body, "400 bad_request", func(r *http.Request) { r.Header.Del("Edit-Fence") })
}

// A woken editor is refused by the API as by the service, and what was got is what is saved.
func TestDraftThroughTheAPI(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	event := "/v1/events/" + a.post("/v1/events", eventOf(a.housePlan()), as(a.organizer), key("drafted")).want(201).text("id")
	take := func(what string) edit {
		return header("Edit-Fence", string(a.post(event+"/draft/edits", what, as(a.organizer)).want(200).raw[len(`{"fence":`):][0]))
	}
	late := take(`{"item":1,"page":"details"}`)
	whole := take(`{"whole":true}`)
	a.do("PUT", event+"/draft/1/details", `{"name":"Circle"}`, as(a.organizer), late).wantCode(409, "lock_lost")
	a.do("PUT", event+"/draft/1/details", `{"name":"Circle","note":"<&>"}`, as(a.organizer), whole).want(200)
	if page := a.get(event+"/draft/1/details", as(a.organizer)).want(200); page.text("body", "note") != "<&>" || !strings.Contains(string(page.raw), `<&>`) {
		t.Errorf("the page is %s", page.raw)
	}
	got := a.get(event+"/draft", as(a.organizer)).want(200)
	a.do("PUT", event+"/draft", string(got.raw), as(a.organizer), whole).want(200)
	again := a.get(event+"/draft", as(a.organizer)).want(200)
	if cut := func(raw []byte) string { _, rest, _ := strings.Cut(string(raw), `"variables"`); return rest }; cut(got.raw) != cut(again.raw) {
		t.Errorf("what was got and saved is another draft:\n%s\n%s", got.raw, again.raw)
	}
	a.post(event+"/draft/publish?dry_run=true", "", as(a.organizer), whole).want(200)
	if done := a.post(event+"/draft/publish", "", as(a.organizer), whole).want(200); done.number("version") != 2 {
		t.Errorf("published %s", done.raw)
	}
}
