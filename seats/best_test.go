package seats_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"seatfence/seats"
)

func TestBestIsWhatTryingEverythingFinds(t *testing.T) {
	t.Parallel()
	var met [5]int // by stage, 0: nothing found
	for seed := range uint64(10_000) {
		r := rand.New(rand.NewPCG(seed, 3))
		spots, v := smallHall(r)
		w := someWish(r, spots)
		b := newBrute(spots, v, w)
		want, found := b.best()
		got, ok := seats.NewHall(spots).Best(v, w)
		met[want.stage]++
		if ok != found {
			t.Fatalf("seed %d: %+v: found %v, want %v", seed, w, ok, found)
		}
		if !found {
			continue
		}
		set := b.setOf(got.Seats)
		if len(got.Seats) != w.Quantity || got.Pieces != want.pieces || got.LastResort != want.strands || got.Together != (want.pieces == 1) ||
			b.cost(set) != want.cost || set != want.set {
			t.Fatalf("seed %d: %+v:\ngot  %+v, cost %d, set %b\nwant %+v, set %b", seed, w, got, b.cost(set), set, want, want.set)
		}
		if !slices.IsSortedFunc(got.Seats, inPlaceOrder(spots)) {
			t.Fatalf("seed %d: %v is not by run and position", seed, got.Seats)
		}
	}
	if slices.Min(met[:]) < 100 {
		t.Errorf("the halls say too little: by stage they met %v", met)
	}
}

// A choice in pieces is traced through one block of lines at a time. Lines made long by seats that are taken have a block each, and the
// same choice.
func TestPiecesAcrossBlocksAreTheSame(t *testing.T) {
	t.Parallel()
	apart := 0
	for seed := uint64(0); apart < 200; seed++ {
		r := rand.New(rand.NewPCG(seed, 6))
		spots, v := smallHall(r)
		w := someWish(r, spots)
		want, _ := seats.NewHall(spots).Best(v, w)
		if want.Pieces < 2 {
			continue
		}
		apart++
		got, _ := seats.NewHall(lengthened(spots, &v)).Best(v, w)
		if !slices.Equal(got.Seats, want.Seats) || got.Pieces != want.Pieces {
			t.Fatalf("seed %d: %+v: got %+v, want %+v", seed, w, got, want)
		}
	}
}

// lengthened adds a run of 1,100 taken seats to each line, with ids after all others.
func lengthened(spots []seats.Spot, v *seats.Vacancy) []seats.Spot {
	type row struct {
		section string
		line    int32
	}
	long, run := map[row]bool{}, int32(1000)
	for _, s := range slices.Clone(spots) {
		if at := (row{s.Section, s.Line}); !long[at] {
			long[at] = true
			run++
			for pos := range int32(1100) {
				spots = append(spots, seats.Spot{ID: 1000 + seats.ID(len(spots)), Section: s.Section, Line: s.Line, Run: run, Pos: pos, Category: 1})
				v.Free = append(v.Free, false)
			}
		}
	}
	return spots
}

func inPlaceOrder(spots []seats.Spot) func(a, b seats.ID) int {
	at := map[seats.ID]int{}
	for _, s := range spots {
		at[s.ID] = int(s.Run)*1000 + int(s.Pos)
	}
	return func(a, b seats.ID) int { return at[a] - at[b] }
}

func TestStrandsIsItsDefinition(t *testing.T) {
	t.Parallel()
	stranding := 0
	for seed := range uint64(10_000) {
		r := rand.New(rand.NewPCG(seed, 4))
		spots, v := smallHall(r)
		var picked []seats.ID
		for _, s := range spots {
			if r.IntN(3) == 0 {
				picked = append(picked, s.ID)
			}
		}
		b := newBrute(spots, v, seats.Wish{})
		want := b.stranded(b.setOf(picked))
		if got := seats.NewHall(spots).Strands(v, append(picked, 999)); !slices.Equal(got, want) {
			t.Fatalf("seed %d: picked %v strands %v, want %v", seed, picked, got, want)
		}
		if len(want) > 0 {
			stranding++
		}
	}
	if stranding < 1000 {
		t.Errorf("only %d of the picks strand a seat", stranding)
	}
}

// drawn makes a hall of lines of text, one row each, front to back: "." free, "x" taken, "a" accessible, "c" companion, "t" a seat of a
// table, "2" of another category, "p" of channel 7, a blank is an aisle and "_" a gap. Ids run from 1, distance grows to the back and
// the right.
func drawn(lines ...string) ([]seats.Spot, seats.Vacancy) {
	var spots []seats.Spot
	var v seats.Vacancy
	run := int32(0)
	for i, text := range lines {
		run++
		for pos, sign := range text {
			if sign == ' ' {
				run++
			}
			if sign == ' ' || sign == '_' {
				continue
			}
			s := seats.Spot{
				ID: seats.ID(len(spots) + 1), Section: "Stalls", Line: int32(i), Run: run, Pos: int32(pos), Category: 1,
				Distance: int32(100*i + pos), X: float64(pos), Y: float64(i),
			}
			switch sign {
			case 'a':
				s.Attributes = seats.Accessible
			case 'c':
				s.Attributes = seats.Companion
			case 't':
				s.Attributes = seats.WholeTable
			case '2':
				s.Category = 2
			case 'p':
				s.Channel = 7
			}
			spots, v.Free = append(spots, s), append(v.Free, sign != 'x')
		}
	}
	return spots, v
}

func TestBestOf(t *testing.T) {
	t.Parallel()
	type ids = []seats.ID
	row := func(list ...string) []string { return list }
	for name, tc := range map[string]struct {
		hall       []string
		wish       seats.Wish
		want       ids // nil: nothing
		pieces     int
		lastResort bool
	}{
		"two more beside a hold of three are not pushed away by it": {row("xxx..x"), seats.Wish{Quantity: 2}, ids{4, 5}, 1, false},
		"one of the last two is the last resort":                    {row("x..x"), seats.Wish{Quantity: 1}, ids{2}, 1, true},
		"one of the last two is nothing to the strict":              {row("x..x"), seats.Wish{Quantity: 1, Strict: true}, nil, 0, false},
		"a farther seat rather than an orphan":                      {row("...x", ".."), seats.Wish{Quantity: 2}, ids{5, 6}, 1, false},
		"accessible seats stay when all else is gone":               {row("xxaax"), seats.Wish{Quantity: 1}, nil, 0, false},
		"companion seats stay when all else is gone":                {row("xxccx"), seats.Wish{Quantity: 1}, nil, 0, false},
		"one accessible seat with its companion":                    {row("....", "aca."), seats.Wish{Quantity: 2, Accessible: 1}, ids{5, 6}, 1, false},
		"two accessible seats that are not neighbours":              {row("a...a"), seats.Wish{Quantity: 3, Accessible: 2}, ids{1, 2, 5}, 2, false},
		"an aisle parts":                             {row(".. ..", "...x"), seats.Wish{Quantity: 3}, ids{5, 6, 7}, 1, false},
		"a seat that is not for sale parts":          {row(".._.."), seats.Wish{Quantity: 3, Together: true}, nil, 0, false},
		"neighbouring rows before nearer ones":       {row(".x.", "xxx", ".x.", "x.x"), seats.Wish{Quantity: 3}, ids{7, 9, 11}, 3, false},
		"rows anywhere when no neighbouring ones do": {row(".xx", "xxx", "x.x"), seats.Wish{Quantity: 2}, ids{1, 8}, 2, false},
		"the fewest pieces before the nearest":       {row(".x.x.x..", "xxxxx..."), seats.Wish{Quantity: 5}, ids{7, 8, 14, 15, 16}, 2, false},
		"a table goes as a whole":                    {row("tttt"), seats.Wish{Quantity: 4}, ids{1, 2, 3, 4}, 1, false},
		"a table is not for some":                    {row("tttt"), seats.Wish{Quantity: 3}, nil, 0, false},
		"the other price is a wall":                  {row(".2.x"), seats.Wish{Quantity: 1, Category: 2}, ids{2}, 1, false},
		"the category asked for":                     {row("..22"), seats.Wish{Quantity: 2, Category: 2}, ids{3, 4}, 1, false},
		"an allotment is not the public's":           {row("ppp."), seats.Wish{Quantity: 2, Channels: []int32{0}}, nil, 0, false},
		"an allotment for its partner alone":         {row("..pp"), seats.Wish{Quantity: 2, Channels: []int32{7}}, ids{3, 4}, 1, false},
		"beside friends":                             {row("......", "...x.."), seats.Wish{Quantity: 1, Around: ids{10}}, ids{4}, 1, false},
		"nothing of an unknown section":              {row("...."), seats.Wish{Quantity: 1, Section: "Moon"}, nil, 0, false},
		"none":                                       {row("...."), seats.Wish{}, nil, 0, false},
		"more than there are":                        {row("...."), seats.Wish{Quantity: 5}, nil, 0, false},
		"more accessible than seats":                 {row("aaaa"), seats.Wish{Quantity: 1, Accessible: 2}, nil, 0, false},
		"more accessible than anybody may ask for":   {row("aaaa"), seats.Wish{Quantity: 50, Accessible: seats.MaxAccessible + 1}, nil, 0, false},
		"more than anybody may ask for":              {row("...."), seats.Wish{Quantity: seats.MaxQuantity + 1}, nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spots, v := drawn(tc.hall...)
			got, ok := seats.NewHall(spots).Best(v, tc.wish)
			want := seats.Choice{Seats: tc.want, Together: tc.pieces == 1, LastResort: tc.lastResort, Pieces: tc.pieces}
			if ok != (tc.want != nil) || !slices.Equal(got.Seats, want.Seats) ||
				got.Together != want.Together || got.LastResort != want.LastResort || got.Pieces != want.Pieces {
				t.Errorf("got %+v %v, want %+v", got, ok, want)
			}
		})
	}
}

func TestAReleasedAllotmentIsThePublics(t *testing.T) {
	t.Parallel()
	spots, v := drawn("pp.x")
	hall := seats.NewHall(spots)
	w := seats.Wish{Quantity: 3, Channels: []int32{0}}
	if c, ok := hall.Best(v, w); ok {
		t.Fatalf("got %+v of an allotment", c)
	}
	if alone := hall.Strands(v, []seats.ID{2}); !slices.Equal(alone, []seats.ID{1}) {
		t.Errorf("seat 2 strands %v, want 1: seat 3 is behind a wall", alone)
	}
	v.Released = map[int32]bool{7: true}
	if c, ok := hall.Best(v, w); !ok || !slices.Equal(c.Seats, []seats.ID{1, 2, 3}) || c.LastResort {
		t.Errorf("got %+v %v, want the released seats", c, ok)
	}
	if alone := hall.Strands(v, []seats.ID{2}); !slices.Equal(alone, []seats.ID{1, 3}) {
		t.Errorf("seat 2 strands %v, want 1 and 3", alone)
	}
}

// bigHall makes n seats in rows of 100 with two aisles, ten sections at most, one seat in a hundred accessible.
func bigHall(n int) []seats.Spot {
	spots := make([]seats.Spot, n)
	for i := range spots {
		row, pos := i/100, i%100
		lines := max(1, n/1000)
		s := seats.Spot{
			ID: seats.ID(i + 1), Section: fmt.Sprint("Block ", row/lines), Line: int32(row % lines), Run: int32(3*row + pos/34), Pos: int32(pos),
			Category: 1 + int32(row/lines)%3, Distance: int32(10*row + max(pos-50, 50-pos)), X: float64(pos), Y: float64(row),
		}
		if pos == 99 {
			s.Attributes = seats.Accessible
		}
		spots[i] = s
	}
	return spots
}

func TestAHallSellsOutWithoutOverlap(t *testing.T) {
	t.Parallel()
	spots := bigHall(5_000)
	hall := seats.NewHall(spots)
	v := seats.Vacancy{Free: slices.Repeat([]bool{true}, len(spots))}
	r := rand.New(rand.NewPCG(5, 5))
	left, ordinary := len(spots), len(spots)-len(spots)/100
	for left > len(spots)/100 {
		w := seats.Wish{Quantity: 1 + r.IntN(6), Together: r.IntN(2) == 0}
		c, ok := hall.Best(v, w)
		if !ok {
			if !w.Together && w.Quantity <= ordinary {
				t.Fatalf("%d refused with %d left", w.Quantity, ordinary)
			}
			continue
		}
		if len(c.Seats) != w.Quantity || w.Together && !c.Together {
			t.Fatalf("%+v got %+v", w, c)
		}
		for i, id := range c.Seats {
			at, _ := hall.Index(id)
			s := hall.Spots()[at]
			if !v.Free[at] || s.Attributes.Has(seats.Accessible) {
				t.Fatalf("seat %d was sold before, or is not for everybody", id)
			}
			if before, _ := hall.Index(c.Seats[max(0, i-1)]); c.Together && i > 0 && !neighbours(hall.Spots()[before], s) {
				t.Fatalf("%v is together, but not adjacent", c.Seats)
			}
			v.Free[at] = false
		}
		left -= w.Quantity
		ordinary -= w.Quantity
	}
}

func BenchmarkBest(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	odds := func(percent int) func(int) bool { return func(int) bool { return r.IntN(100) < percent } }
	even := func(i int) bool { return i%2 == 0 }
	for _, n := range []int{1_000, 5_000, 10_000, 50_000} {
		hall := seats.NewHall(bigHall(n))
		for _, fill := range []struct {
			name string
			free func(int) bool
			wish seats.Wish
		}{
			{"empty", odds(100), seats.Wish{Quantity: 4}},
			{"half", odds(50), seats.Wish{Quantity: 4}},
			{"nearly full", odds(2), seats.Wish{Quantity: 4}},
			{"half, around", odds(50), seats.Wish{Quantity: 4, Around: []seats.ID{1, 2}}},
			{"checkerboard, 10 in neighbouring rows", even, seats.Wish{Quantity: 10}},
			{"few left, 10 anywhere", func(i int) bool { return i%200 == 0 }, seats.Wish{Quantity: 10}},
			{"checkerboard, 20", even, seats.Wish{Quantity: 20}},
			{"half, 20 with 5 accessible", odds(50), seats.Wish{Quantity: 20, Accessible: 5}},
			{"checkerboard, 200", even, seats.Wish{Quantity: 200}},
			{"half, 200 with 20 accessible", odds(50), seats.Wish{Quantity: 200, Accessible: seats.MaxAccessible}},
		} {
			v := seats.Vacancy{Free: make([]bool, n)}
			for i := range v.Free {
				v.Free[i] = fill.free(i)
			}
			b.Run(fmt.Sprintf("%d/%s", n, fill.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					hall.Best(v, fill.wish)
				}
			})
		}
	}
}
