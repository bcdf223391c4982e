package seats

import (
	"context"
	"math"
	"time"

	"github.com/google/uuid"

	"seatfence/db"
)

// Row is a seat with its owner, for those who may know.
type Row struct {
	Seat
	CategoryID int32
	Area       *int32 // of a place
	Channel    *int32
	Hold       *uuid.UUID
	HeldUntil  *time.Time
	Buyer      *uuid.UUID
	Holder     []uuid.UUID // the buyer of Hold, if there is one
}

// List returns the numbered seats of an event, or of one section, in id order.
func List(ctx context.Context, conn db.DBTX, event EventID, reach Reach, section *string) ([]Seat, error) {
	rows, err := queries.SeatList(ctx, conn, db.SeatListParams{EventID: int64(event), AnyChannel: reach.All, Channels: reach.Channels, Section: section})
	list := make([]Seat, len(rows))
	for i, r := range rows {
		list[i] = Seat{
			ID: r.ID, Place: Place{r.Section, r.RowLabel, r.Number}, Category: r.Category, Price: r.Price, State: State(r.State), Fence: r.Fence,
			Attributes: Attributes(r.Attributes), Tags: r.Tags,
		}
	}
	return list, err
}

// ByID returns the rows of the given seats that exist, in id order.
func ByID(ctx context.Context, conn db.DBTX, event EventID, reach Reach, ids []ID) ([]Row, error) {
	rows, err := queries.SeatsByID(ctx, conn, db.SeatsByIDParams{EventID: int64(event), AnyChannel: reach.All, Channels: reach.Channels, Ids: ids})
	list := make([]Row, len(rows))
	for i, r := range rows {
		list[i] = Row{
			Seat: Seat{
				ID: r.ID, Place: Place{r.Section, r.RowLabel, r.Number}, Category: r.Category, Price: r.Price, State: State(r.State), Fence: r.Fence,
				Attributes: Attributes(r.Attributes), Tags: r.Tags,
			},
			CategoryID: r.CategoryID, Area: r.AreaID, Channel: r.ChannelID, Hold: r.HoldID, HeldUntil: r.HeldUntil, Buyer: r.Buyer, Holder: r.Holder,
		}
	}
	return list, err
}

// nearReach is how many ids around a lost seat are looked at for another: some rows of a house, and a bounded scan of a large one.
const nearReach = 400

// Near returns up to n free seats within reach around a lost one, of one of the given categories, nearest first and
// without their tags. They are not held. Accessible and companion seats are left out: they are for those who ask for them.
func Near(ctx context.Context, conn db.DBTX, event EventID, reach Reach, lost ID, categories []int32, except []ID, n int) ([]Seat, error) {
	rows, err := queries.SeatsNear(ctx, conn, db.SeatsNearParams{
		EventID: int64(event), Near: lost, Lowest: lost - min(lost, nearReach), Highest: lost + min(math.MaxInt32-lost, nearReach),
		Categories: categories, LeaveOut: except, MaxRows: int32(n), AnyChannel: reach.All, Channels: reach.Channels, NotWith: int16(Accessible | Companion),
	})
	list := make([]Seat, len(rows))
	for i, r := range rows {
		list[i] = Seat{
			ID: r.ID, Place: Place{r.Section, r.RowLabel, r.Number}, Price: r.Price, State: Free, Fence: r.Fence, Category: r.Category,
			Attributes: Attributes(r.Attributes),
		}
	}
	return list, err
}

// Change is one entry of a seat's ledger. Ref names the hold, booking or block it was made for.
type Change struct {
	Fence  int64
	Action string
	Actor  *uuid.UUID
	Ref    uuid.UUID
	At     time.Time
}

// History returns up to n changes of a seat with a fence below before, newest first.
func History(ctx context.Context, conn db.DBTX, event EventID, seat ID, before int64, n int) ([]Change, error) {
	rows, err := queries.SeatHistory(ctx, conn, db.SeatHistoryParams{EventID: int64(event), SeatID: seat, BeforeFence: before, MaxRows: int32(n)})
	list := make([]Change, len(rows))
	for i, r := range rows {
		list[i] = Change{Fence: r.Fence, Action: r.Action, Actor: r.Actor, Ref: r.Ref, At: r.At.UTC()}
	}
	return list, err
}
