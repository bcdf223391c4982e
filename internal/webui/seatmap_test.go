package webui_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"seatfence/internal/browsertest"
)

// drawnSeat, drawnRow, drawnSection and drawnPlan are the form of GET /v1/events/{event}/map.
type (
	drawnSeat struct {
		ID         int     `json:"id"`
		Label      string  `json:"label"`
		Number     string  `json:"number"`
		Category   int     `json:"category"`
		X          float64 `json:"x"`
		Y          float64 `json:"y"`
		Accessible bool    `json:"accessible,omitempty"`
		Restricted bool    `json:"restricted_view,omitempty"`
	}
	drawnRow struct {
		Label string      `json:"label"`
		Seats []drawnSeat `json:"seats"`
	}
	drawnSection struct {
		Name string     `json:"name"`
		Rows []drawnRow `json:"rows"`
	}
	point     struct{ X, Y float64 }
	drawnArea struct {
		ID       int       `json:"id"`
		Name     string    `json:"name"`
		Category int       `json:"category"`
		Capacity int       `json:"capacity"`
		Outline  []xyPoint `json:"outline,omitempty"`
	}
	xyPoint struct {
		X float64 `json:"x"`
		Y float64 `json:"y"`
	}
	drawnThing struct {
		Kind    string    `json:"kind"`
		Label   string    `json:"label,omitempty"`
		Outline []xyPoint `json:"outline"`
	}
	drawnPlan struct {
		Layout      int            `json:"layout"`
		Categories  []int          `json:"categories"`
		Sections    []drawnSection `json:"sections"`
		Areas       []drawnArea    `json:"areas"`
		Decorations []drawnThing   `json:"decorations"`
	}
)

const mapPage = `<!doctype html><meta charset="utf-8"><body style="margin:0;height:100vh"><div id="host" style="height:100vh"></div>
<script type="module">
import {SeatMap} from "/static/seatmap.js"
const plan = await (await fetch("/plan.json")).json()
const host = document.getElementById("host")
window.states = new Map()
window.told = []
window.map = new SeatMap(host, {plan, words: {zoomIn: "In", zoomOut: "Out", whole: "All", map: "Map", wheel: "Ctrl and wheel"}, colorOf: c => c, caption: r => [r.name, "from 45"]})
map.setStates(seat => states.get(seat) ?? 0)
for (const type of ["pick", "section", "area", "hover"]) map.addEventListener(type, e => told.push([type, e.detail]))
window.painted = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))
window.ready = true
</script>`

// mapOf opens a page with a map of a plan.
func mapOf(t testing.TB, plan any) *browsertest.Tab {
	t.Helper()
	body, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, mapPage)
	})
	mux.HandleFunc("/plan.json", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
	mux.Handle("/static/", http.StripPrefix("/static/", http.FileServerFS(os.DirFS("static"))))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	tab := browsertest.Open(t).Tab(server.URL)
	tab.Wait("window.ready")
	return tab
}

// house is rows of an amphitheatre, in sections side by side.
func house(n int) drawnPlan {
	plan := drawnPlan{
		Layout: 1, Categories: []int{}, Areas: []drawnArea{{ID: 1, Name: "Floor", Capacity: 900, Outline: []xyPoint{{-60, 40}, {60, 40}, {60, 90}, {-60, 90}}}},
		Decorations: []drawnThing{{Kind: "stage", Label: "Stage", Outline: []xyPoint{{-80, 0}, {80, 0}, {80, 30}, {-80, 30}}}},
	}
	const sections, across = 8, 24
	id := 0
	for s := range sections {
		section := drawnSection{Name: fmt.Sprintf("Block %d", s+1)}
		for r := 0; id < n*(s+1)/sections; r++ {
			row := drawnRow{Label: fmt.Sprint(r + 1)}
			radius := 160 + 10*float64(r)
			for c := range across {
				if id >= n*(s+1)/sections {
					break
				}
				angle := math.Pi * (float64(s) + 0.05 + 0.9*float64(c)/across) / sections
				id++
				row.Seats = append(row.Seats, drawnSeat{
					ID: id, Label: fmt.Sprint(section.Name, " ", r+1, "-", c+1), Number: fmt.Sprint(c + 1), Category: r % 6,
					X: -radius * math.Cos(angle), Y: radius * math.Sin(angle), Accessible: c == 0 && r == 0, Restricted: c == across-1,
				})
			}
			section.Rows = append(section.Rows, row)
		}
		plan.Sections = append(plan.Sections, section)
	}
	return plan
}

// settled waits until nothing moves any more.
func settled(tab *browsertest.Tab) {
	tab.Eval("new Promise(done => { let last, same = 0; (function look() { const now = innerWidth + ' ' + map.scale + JSON.stringify(map.place(1)); same = now === last ? same + 1 : 0; last = now; if (same > 3) done(); else setTimeout(look, 60) })() })", nil)
}

func placeOf(tab *browsertest.Tab, seat int) (at point) {
	tab.Eval(fmt.Sprintf("map.place(%d)", seat), &at)
	return at
}

func TestMapSaysWhichSeatWasMeant(t *testing.T) {
	tab := mapOf(t, house(1200))
	for _, dpr := range []float64{1, 2} {
		tab.Screen(1000, 700, dpr, false)
		for _, target := range []string{"{section: 'Block 2'}", "{seat: 200}", "{section: 'Block 7'}", "{seat: 1199}"} {
			tab.Eval("map.zoomTo("+target+")", nil)
			settled(tab)
			var wrong []int
			tab.Eval("[...Array(1200).keys()].map(i => i + 1).filter(id => { const p = map.place(id); return map.seatAt(p.x + 1, p.y - 1) !== id })", &wrong)
			if len(wrong) > 0 {
				t.Errorf("at %s and %v px to a pixel, %d seats are not where they are drawn: %v", target, dpr, len(wrong), wrong[:min(5, len(wrong))])
			}
		}
	}
	tab.Eval("map.zoomTo({seat: 600})", nil)
	settled(tab)
	at := placeOf(tab, 600)
	tab.Mouse("Moved", at.X, at.Y)
	tab.Click(at.X, at.Y)
	tab.Wait("told.some(([type, d]) => type === 'hover' && d.seat === 600) && told.filter(([type]) => type === 'pick').length === 1 && told.findLast(([type]) => type === 'pick')[1].seat === 600")
	tab.Mouse("Pressed", at.X, at.Y)
	tab.Mouse("Moved", at.X+80, at.Y)
	tab.Mouse("Released", at.X+80, at.Y)
	moved := placeOf(tab, 600)
	if math.Abs(moved.X-at.X-80) > 1 || math.Abs(moved.Y-at.Y) > 1 {
		t.Errorf("dragged from %v to %v", at, moved)
	}
	tab.Eval("told.length = 0", nil)
	tab.Click(moved.X, moved.Y)
	tab.Wait("told.filter(([type]) => type === 'pick').length === 1") // the drag picked nothing
}

func TestMapIsZoomedAndNeverLost(t *testing.T) {
	tab := mapOf(t, house(1200))
	tab.Screen(1000, 700, 1, false)
	settled(tab)
	var before, after float64
	tab.Eval("map.scale", &before)
	tab.Wheel(500, 350, -200, false)
	tab.Wait("!document.querySelector('.hint').hidden") // the page scrolls, and says how to zoom
	if tab.Eval("map.scale", &after); after != before {
		t.Error("the page's scrolling has zoomed the map")
	}
	tab.Eval("map.zoomTo({section: 'Block 4'})", nil)
	settled(tab)
	at := placeOf(tab, 600)
	var near float64
	tab.Eval("map.scale", &near)
	tab.Wheel(at.X, at.Y, -100, true)
	tab.Wait(fmt.Sprintf("map.scale > %v", near))
	if p := placeOf(tab, 600); math.Hypot(p.X-at.X, p.Y-at.Y) > 2 {
		t.Errorf("what the pointer was at has gone from %v to %v", at, p)
	}
	for range 30 {
		tab.Wheel(500, 350, -300, true)
	}
	tab.Eval("document.querySelector('.seatmap canvas').focus()", nil)
	for _, drag := range [][2]float64{{900, 0}, {0, 600}, {-900, 0}, {0, -600}} {
		for range 20 {
			tab.Mouse("Pressed", 500, 350)
			tab.Mouse("Moved", 500+drag[0]/2, 350+drag[1]/2)
			tab.Mouse("Released", 500+drag[0]/2, 350+drag[1]/2)
		}
		var inside bool
		tab.Eval("[...Array(1200).keys()].some(i => { const p = map.place(i + 1); return p.x > -1000 && p.x < 2000 && p.y > -700 && p.y < 1400 })", &inside)
		if !inside {
			t.Errorf("dragged by %v the map is lost", drag)
		}
	}
	tab.Eval("document.querySelector('.controls button:last-child').click()", nil)
	tab.Wait(fmt.Sprintf("Math.abs(map.scale - %v) < 1e-6", before))
	tab.Wait("document.querySelector('.mini').hidden")
}

func TestMapIsPinchedByFingers(t *testing.T) {
	tab := mapOf(t, house(1200))
	tab.Screen(390, 844, 2, true)
	settled(tab)
	var before float64
	tab.Eval("map.scale", &before)
	tab.Touch("Start", [2]float64{150, 400}, [2]float64{200, 400})
	for d := 10.0; d <= 100; d += 10 {
		tab.Touch("Move", [2]float64{150 - d, 400}, [2]float64{200 + d, 400})
	}
	tab.Touch("End")
	tab.Wait(fmt.Sprintf("map.scale > 3 * %v && !map.near !== map.near", before))
	tab.Eval("map.zoomTo({seat: 77})", nil)
	settled(tab)
	at := placeOf(tab, 77)
	tab.Touch("Start", [2]float64{at.X, at.Y})
	tab.Touch("End")
	tab.Wait("told.some(([type, d]) => type === 'pick' && d.seat === 77)")
}

func TestMapShowsSectionsFromAfarAndSeatsFromNear(t *testing.T) {
	tab := mapOf(t, house(8000))
	tab.Screen(1000, 700, 1, false)
	settled(tab)
	tab.Wait("!map.near && map.drawn.regions === 9 && map.drawn.seats === 0")
	var at point
	tab.Eval("(() => { const a = map.place(1), b = map.place(1000); return {X: (a.x + b.x) / 2, Y: (a.y + b.y) / 2} })()", &at)
	tab.Click(at.X, at.Y)
	tab.Wait("told.some(([type, d]) => type === 'section' && d.section === 'Block 1')")
	settled(tab)
	tab.Wait("map.near && map.drawn.seats > 500")
	tab.Eval("map.zoomTo({area: 1})", nil)
	settled(tab)
	tab.Eval("told.length = 0", nil)
	tab.Click(450, 350)
	tab.Wait("told.some(([type, d]) => type === 'area' && d.area === 1)")
}

func TestMapDrawsEachStateAsItsOwnShape(t *testing.T) {
	tab := mapOf(t, house(400))
	tab.Screen(1000, 700, 1, false)
	tab.Eval("[[5, 1], [6, 2], [7, 3]].forEach(([seat, state]) => states.set(seat, state)); map.changed([5, 6, 7]); map.setChosen(new Set([8])); map.setAsking(new Set([9])); map.zoomTo({seat: 8})", nil)
	settled(tab)
	tab.Wait("map.drawn.looks.accessible > 0 && ['held', 'booked', 'blocked', 'yours', 'asking'].every(look => map.drawn.looks[look] === 1) && map.drawn.looks.free > 5")
	const ink = `(seat => { const c = document.querySelector('.seatmap canvas'), p = map.place(seat), d = 40, n = c.getContext('2d').getImageData(p.x - d / 2, p.y - d / 2, d, d).data;
		let sum = 0; for (let i = 0; i < n.length; i += 4) sum += Math.abs(n[i] - n[0]) + Math.abs(n[i + 1] - n[1]) + Math.abs(n[i + 2] - n[2]); return sum })`
	var bright, dim float64
	tab.Eval(ink+"(12)", &bright)
	tab.Eval("map.setFilter(seat => seat.id !== 12); painted()", nil)
	if tab.Eval(ink+"(12)", &dim); dim > bright/2 || dim == 0 {
		t.Errorf("a seat that is not meant has %v of ink, and had %v", dim, bright)
	}
	var plain, ringed float64
	tab.Eval(ink+"(10)", &plain)
	tab.Eval("map.point(10); painted()", nil)
	if tab.Eval(ink+"(10)", &ringed); ringed <= plain {
		t.Errorf("a seat that is pointed at has no ring: %v of ink, and %v without", ringed, plain)
	}
}

func TestMapOfAnyPlanIsDrawn(t *testing.T) {
	plans := map[string]drawnPlan{"50,000 seats": house(50_000)}
	empty := drawnPlan{Categories: []int{}, Sections: []drawnSection{}, Areas: []drawnArea{}, Decorations: []drawnThing{}}
	plans["nothing"] = empty
	one := empty
	one.Sections = []drawnSection{{Name: "Box", Rows: []drawnRow{{Label: "1", Seats: []drawnSeat{{ID: 1, Number: "1"}}}}}}
	plans["one seat"] = one
	heap := empty
	heap.Sections = []drawnSection{{Name: "Heap", Rows: []drawnRow{{Label: "1", Seats: []drawnSeat{{ID: 1}, {ID: 2}, {ID: 3}}}}}}
	plans["seats all at one place"] = heap
	areas := empty
	areas.Areas = house(0).Areas
	plans["areas"] = areas
	for name, plan := range plans {
		tab := mapOf(t, plan)
		tab.Wait("map.drawn.frames > 0 && Number.isFinite(map.scale)")
		tab.Eval("map.zoomTo({seat: 1}); map.zoomTo('all'); map.changed([1, 999999]); painted()", nil)
		var ok bool
		if tab.Eval("Number.isFinite(map.scale) && map.scale > 0", &ok); !ok {
			t.Errorf("a plan of %s has no scale", name)
		}
	}
}

// BenchmarkSeatMap prints what a browser without a graphics card needs: ms until the first picture, and from frame to frame (median) while the
// map is moved and while 200 seats change in each.
func BenchmarkSeatMap(b *testing.B) {
	for _, n := range []int{1000, 10_000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tab := mapOf(b, house(n))
			tab.Screen(1440, 900, 1, false)
			tab.Eval("painted()", nil)
			var took struct{ First, Pan, Update float64 }
			for b.Loop() {
				tab.Eval(`(async () => {
					const plan = await (await fetch("/plan.json")).json(), {SeatMap} = await import("/static/seatmap.js")
					map.destroy()
					const began = performance.now()
					window.map = new SeatMap(document.getElementById("host"), {plan, words: {}, colorOf: c => c})
					map.setStates(seat => states.get(seat) ?? 0)
					await painted()
					const first = performance.now() - began
					const frames = async act => {
						const times = []
						let last = await new Promise(requestAnimationFrame)
						for (let i = 0; i < 60; i++) {
							act(i)
							const now = await new Promise(requestAnimationFrame)
							times.push(now - last)
							last = now
						}
						return times.sort((a, b) => a - b)[30]
					}
					const canvas = document.querySelector(".seatmap canvas"), key = key => canvas.dispatchEvent(new KeyboardEvent("keydown", {key}))
					while (!map.near) key("+")
					const pan = await frames(i => key(i % 2 ? "ArrowLeft" : "ArrowRight"))
					const update = await frames(i => {
						const seats = Array.from({length: 200}, (_, j) => (i * 200 + j) % `+fmt.Sprint(n)+` + 1)
						for (const seat of seats) states.set(seat, (states.get(seat) ?? 0) + 1 & 3)
						map.changed(seats)
					})
					return {First: first, Pan: pan, Update: update}
				})()`, &took)
			}
			b.ReportMetric(took.First, "first-ms")
			b.ReportMetric(took.Pan, "pan-ms")
			b.ReportMetric(took.Update, "update-ms")
		})
	}
}
