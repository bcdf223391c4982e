package demo

import (
	"fmt"

	"seatfence/seats/plan"
)

// Theatre is a house of 1,280 numbered seats: stalls that widen towards the back, a circle and a balcony that narrow.
func Theatre() plan.House {
	return plan.House{
		Categories: []plan.HouseCategory{
			{Name: "Stalls front", Price: 7800}, {Name: "Stalls", Price: 6200}, {Name: "Circle", Price: 5400}, {Name: "Balcony", Price: 2900},
		},
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
}

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
