package demo

import (
	"fmt"
	"math"

	"seatfence/booking"
	"seatfence/seats/plan"
)

// theatrePrices are what the theatre's categories cost: adults less until the early-bird tier ends, and the reduced ticket always.
var theatrePrices = []struct {
	category              string
	early, adult, reduced int64
}{
	{"Stalls front", 6800, 7800, 5800}, {"Stalls", 5200, 6200, 4600}, {"Circle", 4600, 5400, 4000}, {"Balcony", 2400, 2900, 2000},
}

// Theatre is a house of 1,280 numbered seats: stalls that widen towards the back, a circle and a balcony that narrow. The last row of the
// stalls has places for wheelchairs with a seat beside each, and the ends of the balcony see less of the stage.
func Theatre() plan.Plan {
	house := plan.House{
		Sections: []plan.HouseSection{
			{Name: "Stalls", Rows: rows(22, func(i int) plan.HouseRow {
				category := "Stalls front"
				if i >= 8 {
					category = "Stalls"
				}
				return plan.HouseRow{Label: letter(i), Category: category, Seats: min(20+2*(i/2), 36)}
			})},
			{Name: "Circle", Rows: rows(10, func(i int) plan.HouseRow {
				return plan.HouseRow{Label: letter(i), Category: "Circle", Seats: 44 - 2*(i/2)}
			})},
			{Name: "Balcony", Rows: rows(8, func(i int) plan.HouseRow {
				return plan.HouseRow{Label: letter(i), Category: "Balcony", Seats: 36 - 2*i}
			})},
		},
	}
	for _, p := range theatrePrices {
		house.Categories = append(house.Categories, plan.HouseCategory{Name: p.category})
	}
	drawn := house.Plan()
	drawn.Name = "Theater am Kanal"
	drawn.Decorations = []plan.Shape{{Kind: plan.Stage, Label: "Stage", Outline: []plan.Point{{X: -10, Y: -6}, {X: 10, Y: -6}, {X: 8, Y: -2}, {X: -8, Y: -2}}}}
	stalls, balcony := drawn.Sections[0].Rows, drawn.Sections[2].Rows
	last := stalls[len(stalls)-1].Seats
	for i := 0; i < wheelchairs; i++ {
		last[2*i].Accessible, last[2*i+1].Companion = true, true
	}
	for _, row := range balcony {
		for _, i := range []int{0, 1, len(row.Seats) - 2, len(row.Seats) - 1} {
			row.Seats[i].RestrictedView = true
		}
	}
	return drawn
}

const wheelchairs = 3

// arenaPrices are what the arena's categories cost.
var arenaPrices = []booking.Price{
	{Category: "Floor", Amount: 6900},
	{Category: "Lower tier, side", Amount: 9500},
	{Category: "Lower tier, end", Amount: 7900},
	{Category: "Upper tier", Amount: 4900},
}

// The arena's rings: how far the first row of a tier is from the middle, in seats.
const (
	lowerRadius = 66
	upperRadius = 93
	behindStage = 0.2 // of a half turn to either side of the stage's middle, from where the view is restricted
)

// Arena is a ring of 14,360 numbered seats in two tiers of blocks, around a floor of 2,400 places without numbers and a stage at its end.
func Arena() plan.Plan {
	house := plan.House{Areas: []plan.HouseArea{{Name: "Floor", Category: "Floor", Capacity: 2400}}}
	for _, p := range arenaPrices {
		house.Categories = append(house.Categories, plan.HouseCategory{Name: p.Category})
	}
	const lower, upper = 24, 28
	for block := range lower {
		category := "Lower tier, side"
		if block%12 >= 8 { // four blocks at either end
			category = "Lower tier, end"
		}
		house.Sections = append(house.Sections, tier(101+block, 18, 12, category))
	}
	for block := range upper {
		house.Sections = append(house.Sections, tier(201+block, 14, 16, "Upper tier"))
	}
	drawn := house.Plan()
	drawn.Name, drawn.Focus = "Spree Arena", &plan.Point{Y: 10} // the best seats face the stage, and are not behind it
	for i := range drawn.Sections {
		if i < lower {
			bend(&drawn.Sections[i], lowerRadius, (float64(i)-1.5)/lower)
		} else {
			bend(&drawn.Sections[i], upperRadius, (float64(i-lower)-1.5)/upper)
		}
	}
	drawn.Areas[0].Outline = []plan.Point{{X: -36, Y: -40}, {X: 36, Y: -40}, {X: 36, Y: 46}, {X: -36, Y: 46}}
	drawn.Decorations = []plan.Shape{{Kind: plan.Stage, Label: "Stage", Outline: []plan.Point{{X: -26, Y: -58}, {X: 26, Y: -58}, {X: 26, Y: -46}, {X: -26, Y: -46}}}}
	return drawn
}

// bend puts a block into a ring around the middle, a part of the turn after its right.
func bend(section *plan.Section, radius, turn float64) {
	for r := range section.Rows {
		list, far := section.Rows[r].Seats, radius+float64(r)
		for i := range list {
			angle := 2*math.Pi*turn + (float64(i)-float64(len(list)-1)/2)/far
			list[i].Point = plan.Point{X: far * math.Cos(angle), Y: far * math.Sin(angle)}
			list[i].RestrictedView = math.Abs(math.Remainder(angle+math.Pi/2, 2*math.Pi)) < behindStage*math.Pi
		}
	}
}

// tier is a block of a ring, whose rows grow by a seat in every second row.
func tier(name, n, front int, category string) plan.HouseSection {
	return plan.HouseSection{Name: fmt.Sprintf("Block %d", name), Rows: rows(n, func(i int) plan.HouseRow {
		return plan.HouseRow{Label: fmt.Sprint(i + 1), Category: category, Seats: front + i/2}
	})}
}

func rows(n int, row func(int) plan.HouseRow) []plan.HouseRow {
	list := make([]plan.HouseRow, n)
	for i := range list {
		list[i] = row(i)
	}
	return list
}

func letter(i int) string { return string(rune('A' + i)) }
