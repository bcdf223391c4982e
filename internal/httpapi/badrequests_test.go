package httpapi_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// badAddresses are what an operation refuses as its method, path and query.
func (x target) badAddresses() (list []bad) {
	add := func(row int, name, method, path, answers string, edits ...edit) {
		list = append(list, bad{row, name, method, path, x.body, append(x.edits(), edits...), answers})
	}
	for name, own := range x.ids {
		for _, id := range badIDs(own) {
			add(47, name, x.method, x.pathWith(name, url.PathEscape(id)), notFound)
		}
		for _, raw := range []string{"..", ".", "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e", "%00", own + "%00", "%ff", "%c0%ae", own + ";v=1", own + "/..", "a%5cb"} {
			add(47, name+" raw", x.method, x.pathWith(name, raw), notFound)
		}
		for _, text := range []string{"'; DROP TABLE seats; --", "%' OR 1=1", "$1", "$$", "{{7*7}}", "<script>", "=cmd()"} {
			add(43, name, x.method, x.pathWith(name, url.PathEscape(text)), notFound)
		}
	}
	for _, path := range []string{x.path() + "/", "/" + x.path(), strings.Replace(x.path(), "/", "//", 2), strings.ToUpper(x.path()), x.path() + "/x/y", "/v2" + x.path()} {
		add(76, "address", x.method, path, notFound)
	}
	x.badQueries(func(row int, query, answers string) { add(row, query, x.method, x.path()+"?"+query, answers) })
	return list
}

func badIDs(own string) []string {
	ids := []string{
		"x", "0", "-1", "+1", "01", "1.0", "1e0", "0x1", "１", "2147483647", "2147483648", "9223372036854775808", " ", "null", "undefined", "İ",
		" " + own, own + " ", own + "\n", own + "x", own + "=", "0" + own, strings.Repeat("9", 4000),
	}
	if kind, rest, ok := strings.Cut(own, "_"); ok {
		for _, other := range []string{"evt_", "hold_", "bkg_", "blk_", "usr_", "", "_", strings.ToUpper(kind) + "_"} {
			if other != kind+"_" {
				ids = append(ids, other+rest)
			}
		}
		// The same bits in letters of the other case, an unknown id, and one whose spare bits are not zero.
		ids = append(ids, kind+"_"+strings.ToUpper(rest), own[:len(own)-1]+"z", kind+"_"+strings.Repeat("0", len(rest)), kind+"_"+strings.Repeat("z", len(rest)))
	}
	return ids
}

func (x target) badQueries(add func(row int, query, answers string)) {
	add(13, "Event=999", "400 unknown_parameter")
	add(13, "event_id=999", "400 unknown_parameter")
	for _, query := range []string{"%zz", "a=%zz", "a=%", "a;b", "a=1;b=2", "limit=1;offset=2", "a=%f", "limit=%zz"} {
		add(50, query, "400 malformed_query")
	}
	add(54, "offset=1000000000", "400 unknown_parameter")
	for _, query := range []string{"_method=DELETE", "access_token=x", "%ff=1", "%00=1", "[]=1", "=1"} {
		add(110, query, "400 unknown_parameter")
	}
	for _, p := range x.query() {
		add(110, p.Name+"=1&"+p.Name+"=2", "400 repeated_parameter")
		add(110, p.Name+"&"+p.Name, "400 repeated_parameter")
		add(110, strings.ToUpper(p.Name)+"=1", "400 unknown_parameter")
		add(110, p.Name+"[]=1", "400 unknown_parameter")
		refused := "422 invalid_parameter"
		for _, value := range []string{"%00", "a%00", "%ff", "%ed%a0%80"} {
			add(110, p.Name+"="+value, refused)
		}
		if p.Name == "event" {
			add(43, "event=%27%3B+DROP+TABLE+seats%3B+--", notFound)
			continue
		}
		add(110, p.Name, refused)
		add(110, p.Name+"=", refused)
		add(110, p.Name+"="+strings.Repeat("9", 301), refused)
		if p.Schema.Value.Type.Is(openapi3.TypeInteger) {
			for _, value := range []string{"-1", "0", "1e9", "abc", "1.5", "%2b1", "0x10", "007", "%201", "1%20", "9223372036854775808", "１"} {
				add(54, p.Name+"="+value, refused)
			}
		}
	}
	for _, limit := range []string{"201", "1000000000", "2147483648", "4294967297"} {
		if slices.ContainsFunc(x.query(), func(p *openapi3.Parameter) bool { return p.Name == "limit" }) {
			add(54, "limit="+limit, "422 invalid_parameter")
		}
	}
	if slices.ContainsFunc(x.query(), func(p *openapi3.Parameter) bool { return p.Name == "cursor" }) {
		for _, cursor := range []string{
			"{}", "null", "1", `"a"`, "[]", `{"a":1}`, `{"s":"2099-01-01T00:00:00Z","i":1} `, `{"S":"2099-01-01T00:00:00Z","I":1}`, `{"i":1}{"i":2}`, `{"i":1,"i":2}`,
			`{"s":"x"}`, `{"i":9223372036854775808}`, `{"i":-1.5}`, `{"t":"2099-02-30T00:00:00Z"}`, `{"t":"2099-01-01T00:00:00+14:00","e":1,"i":"x"}`, "\xff",
		} {
			add(111, "cursor="+base64.RawURLEncoding.EncodeToString([]byte(cursor)), "422 invalid_parameter")
		}
		add(111, "cursor=%27+OR+1%3D1", "422 invalid_parameter")
		add(111, "cursor=AAAA", "422 invalid_parameter")
	}
}

// badHeaders are what an operation refuses in the head of its request.
func (x target) badHeaders(a *api) (list []bad) {
	add := func(row int, name, answers string, edit edit) {
		list = append(list, bad{row, name, x.method, x.path(), x.body, append(x.edits(), edit), answers})
	}
	if x.keyed() {
		const missing, invalid = "400 idempotency_key_missing", "400 idempotency_key_invalid"
		add(56, "no key", missing, func(r *http.Request) { r.Header.Del("Idempotency-Key") })
		for _, k := range []string{"", " ", "a b", "schlüssel", "🎭", "\x80", strings.Repeat("k", 256), strings.Repeat("k", 8000)} {
			add(58, "key "+k, invalid, key(k))
		}
		add(58, "two keys", invalid, func(r *http.Request) { r.Header["Idempotency-Key"] = []string{"a", "a"} })
	}
	const refused = "401 unauthorized"
	if !x.public() {
		add(63, "no credential", refused, func(r *http.Request) { r.Header.Del("Authorization") })
		add(63, "bad cookie", refused, func(r *http.Request) {
			r.Header.Del("Authorization")
			r.Header.Set("Cookie", "seatfence_session=x")
		})
		add(63, "bad cookie of staff", refused, func(r *http.Request) {
			r.Header.Del("Authorization")
			r.Header.Set("Cookie", "seatfence_staff=sfu_"+strings.Repeat("A", 43))
		})
	}
	good := x.token
	if good == "" {
		good = a.partner
	}
	for _, value := range []string{
		"", "Bearer", "Bearer ", "Basic " + good, "Token " + good, good, "Bearer" + good, "Bearer  " + good, "Bearer " + good + " " + good, "Bearer " + good + ",x",
		"Bearer sf_" + strings.Repeat("x", 16<<10), "Bearer sfs_" + strings.Repeat("x", 600), "Bearer sf_", "Bearer sfs_", "Bearer sfu_", "Bearer sfu_" + strings.Repeat("A", 43), "Bearer sfu_" + strings.Repeat("x", 600), "Bearer \x80", "Bearer '; DROP TABLE api_keys; --",
	} {
		add(64, "credential", refused, header("Authorization", value))
	}
	add(64, "two credentials", refused, func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer " + good, "Bearer " + good} })
	for _, token := range []string{a.revoked, swapped(good), good[:len(good)-1] + "0", good[:len(good)-1], good + "0", a.revoked[:25] + good[min(25, len(good)):]} {
		if token != good {
			add(65, "credential", refused, as(token))
		}
	}
	for _, claims := range []string{`{"alg":"none"}`, `{"alg":"HS256"}`, `{"alg":"RS256","jku":"http://127.0.0.1"}`} {
		text := base64.RawURLEncoding.EncodeToString
		add(69, claims, refused, as(text([]byte(claims))+"."+text([]byte(`{"sub":"1","nbf":9999999999,"aud":"x"}`))+"."+text([]byte("x"))))
	}
	return list
}

// badMethods are those that an address has no operation for.
func (s *suite) badMethods(targets []target) {
	s.t.Helper()
	allowed, paths := map[string][]string{}, map[string]string{}
	for _, x := range targets {
		allowed[x.route], paths[x.route] = append(allowed[x.route], x.method), x.path()
		if x.method == http.MethodGet {
			allowed[x.route] = append(allowed[x.route], http.MethodHead)
		}
	}
	for route, known := range allowed {
		path := paths[route]
		for _, method := range methods {
			if !slices.Contains(known, method) {
				answers := "405 method_not_allowed"
				if strings.HasSuffix(route, "/draft/items/{item}") && (method == http.MethodGet || method == http.MethodHead || method == http.MethodPut) {
					answers = notFound // it reads as a page of a section that has a word for its number
				}
				s.refuse(bad{75, "method", method, path, "", []edit{as(s.organizer), header("X-HTTP-Method-Override", known[0])}, answers})
			}
		}
		got := s.do(http.MethodOptions, path, "").want(204)
		for _, method := range known {
			if !strings.Contains(got.header.Get("Allow"), method) {
				s.t.Errorf("%s allows %s and not %s", path, got.header.Get("Allow"), method)
			}
		}
	}
	for _, path := range []string{"/", "/v1", "/v1/nothing", "/metrics", "/debug/pprof/", "/debug/vars", "/.git/config", "/v1/events.json", "/docs/nothing", "/openapi.json"} {
		s.refuse(bad{76, "address", http.MethodGet, path, "", nil, notFound})
	}
}
