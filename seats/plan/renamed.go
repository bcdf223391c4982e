package plan

import "seatfence/seats"

// Renamed maps the keys of old's seats that next does not have to the keys that they have there: a seat is known again by the id that its
// file gave it, if no other has that, or else by its place in the drawing of the same section.
func Renamed(old, next Plan) map[seats.Place]seats.Place {
	type spot struct {
		section string
		Point
	}
	there := map[seats.Place]bool{}
	byID, bySpot := map[string]*seats.Place{}, map[spot]*seats.Place{}
	next.each(func(key seats.Place, s *Seat) {
		there[key] = true
		if _, twice := byID[s.ID]; twice || s.ID == "" {
			byID[s.ID] = nil
		} else {
			byID[s.ID] = &key
		}
		bySpot[spot{key.Section, s.Point}] = &key
	})
	ours := map[seats.Place]bool{}
	old.each(func(key seats.Place, _ *Seat) { ours[key] = true })
	renamed := map[seats.Place]seats.Place{}
	old.each(func(key seats.Place, s *Seat) {
		if there[key] {
			return
		}
		to := byID[s.ID]
		if to == nil {
			to = bySpot[spot{key.Section, s.Point}]
		}
		if to != nil && !ours[*to] {
			renamed[key] = *to
		}
	})
	return renamed
}
