package demo

import (
	"fmt"

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

// Arena is a ring of 14,360 numbered seats in two tiers of blocks, around a floor of 2,400 places without numbers.
func Arena() plan.House {
	house := plan.House{
		Categories: []plan.HouseCategory{
			{Name: "Floor", Price: 6900},
			{Name: "Lower tier, side", Price: 9500},
			{Name: "Lower tier, end", Price: 7900},
			{Name: "Upper tier", Price: 4900},
		},
		Areas: []plan.HouseArea{{Name: "Floor", Category: "Floor", Capacity: 2400}},
	}
	for block := range 24 {
		category := "Lower tier, side"
		if block%12 >= 8 { // four blocks at either end
			category = "Lower tier, end"
		}
		house.Sections = append(house.Sections, tier(101+block, 18, 12, category))
	}
	for block := range 28 {
		house.Sections = append(house.Sections, tier(201+block, 14, 16, "Upper tier"))
	}
	return house
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
