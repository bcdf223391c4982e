package seats

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"seatfence/db"
)

// Availability is what an event has to give at one moment, with what decides whether it may be sold then. Layout says of which drawing.
type Availability struct {
	Organizer   int64
	Status      string
	SaleStarted bool
	SaleEnded   bool
	Layout      int32
	Channels    bool    // whether the event has any
	Released    []int32 // those that have given their seats back
	Free        []ID    // numbered seats, in no order
}

// ReadAvailability reads it in one statement, which waits for no writer: what others are taking but have not committed is free.
func ReadAvailability(ctx context.Context, conn db.DBTX, event EventID) (Availability, error) {
	r, err := queries.HallVacancy(ctx, conn, int64(event))
	if err != nil {
		return Availability{}, fmt.Errorf("read free seats: %w", err)
	}
	return Availability{r.OrganizerID, r.Status, r.SaleStarted, r.SaleEnded, r.Layout, r.Channels, r.Released, r.Free}, nil
}

// In is the availability of a hall's seats. It is false of a hall that is of another layout.
func (a Availability) In(h *Hall) Vacancy {
	v := Vacancy{Free: make([]bool, len(h.Spots())), Released: map[int32]bool{}}
	for _, id := range a.Free {
		if i, ok := h.Index(id); ok {
			v.Free[i] = true
		}
	}
	for _, channel := range a.Released {
		v.Released[channel] = true
	}
	return v
}

// ReadHall reads where an event's seats are. In a snapshot it is of the layout that its event's row names.
func ReadHall(ctx context.Context, conn db.DBTX, event EventID) (*Hall, error) {
	rows, err := queries.HallSeats(ctx, conn, int64(event))
	if err != nil {
		return nil, fmt.Errorf("read hall: %w", err)
	}
	spots := make([]Spot, len(rows))
	for i, r := range rows {
		spots[i] = Spot{
			ID: r.ID, Section: r.Section, Line: r.Line, Run: r.Run, Pos: r.Pos, Category: r.CategoryID, Channel: r.Channel,
			Distance: r.Distance, X: r.X, Y: r.Y, Attributes: Attributes(r.Attributes), Tags: r.Tags,
		}
	}
	return NewHall(spots), nil
}

// LockStates is Lock, and says of each seat that exists whether it is free once its row is ours.
func LockStates(ctx context.Context, conn db.DBTX, event EventID, ids []ID) (map[ID]bool, error) {
	rows, err := queries.SeatLockStates(ctx, conn, db.SeatLockStatesParams{EventID: int64(event), Ids: ids})
	if err != nil {
		return nil, err
	}
	free := make(map[ID]bool, len(rows))
	for _, r := range rows {
		free[r.ID] = r.Free
	}
	return free, nil
}

// Nearby returns the picked seats and those that a pick of them could leave alone or keep from being alone: up to two neighbours on either
// side. Ids that are not of the hall are returned as they are.
func (h *Hall) Nearby(picked []ID) []ID {
	near := map[ID]bool{}
	for _, id := range picked {
		near[id] = true
		if i, ok := h.Index(id); ok {
			for side, next := range h.neighbours(h.slotOf[i]) {
				for range 2 {
					if next < 0 {
						break
					}
					near[h.spots[h.slots[next].index].ID] = true
					next = h.neighbours(next)[side]
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(near))
}

// Missing returns the seats of tables that are sold as a whole and of which only others are picked.
func (h *Hall) Missing(picked []ID) (missing []ID) {
	for _, r := range h.runs {
		if !r.table {
			continue
		}
		var rest []ID
		for p := r.lo; p < r.hi; p++ {
			if id := h.spots[h.slots[p].index].ID; !slices.Contains(picked, id) {
				rest = append(rest, id)
			}
		}
		if len(rest) < int(r.hi-r.lo) {
			missing = append(missing, rest...)
		}
	}
	return missing
}

// Together reports whether seats are one piece: neighbours in a chain, or a table.
func (h *Hall) Together(ids []ID) bool {
	slots := make([]int32, 0, len(ids))
	for _, id := range ids {
		i, ok := h.Index(id)
		if !ok {
			return false
		}
		slots = append(slots, h.slotOf[i])
	}
	slices.Sort(slots)
	for n, p := range slots {
		if n > 0 && (p != slots[n-1]+1 || !h.slots[p].linked) {
			return false
		}
	}
	return true
}
