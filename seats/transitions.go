package seats

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"seatfence/db"
)

var queries = db.New()

// Taken is a seat that a transition got: its place, its new fence, and the price and type it was given at.
type Taken struct {
	ID ID `json:"id"`
	Place
	Type  string `json:"type"`
	Price int64  `json:"price"`
	Fence int64  `json:"fence"`
}

// Lock takes the rows of several seats in id order, whatever their state, and returns how many there are. Every transaction that writes
// more than one seat calls it first: without one order for all, two of them can wait for each other.
func Lock(ctx context.Context, tx pgx.Tx, event EventID, ids []ID) (int, error) {
	rows, err := queries.SeatLock(ctx, tx, db.SeatLockParams{EventID: int64(event), Ids: ids})
	return len(rows), err
}

// HoldFor gives seats to a hold until the given time: those within reach that are free, or whose hold has run out, and that are sold as
// the type asked for. places says that they were picked in an area; named seats are none.
func HoldFor(ctx context.Context, tx pgx.Tx, event EventID, hold, actor uuid.UUID, until time.Time, reach Reach, wants []Want, places bool) ([]Taken, error) {
	p := db.SeatHoldParams{
		EventID: int64(event), HoldID: &hold, Actor: actor, HeldUntil: until, Places: places, AnyChannel: reach.All, Channels: reach.Channels,
	}
	for _, w := range wants {
		p.Ids, p.Fences, p.Types = append(p.Ids, w.ID), append(p.Fences, w.Fence), append(p.Types, w.Type)
	}
	rows, err := queries.SeatHold(ctx, tx, p)
	taken := make([]Taken, len(rows))
	for i, r := range rows {
		taken[i] = Taken{ID: r.ID, Place: Place{r.Section, r.RowLabel, r.Number}, Type: r.Type, Price: r.Price, Fence: r.Fence}
	}
	return taken, err
}

// Release frees the seats that a hold still owns by their fences and returns their ids. action is "released" or "expired"; actor is nil
// for the sweeper.
func Release(ctx context.Context, tx pgx.Tx, event EventID, hold uuid.UUID, action string, actor *uuid.UUID, seats []Taken) ([]ID, error) {
	p := db.SeatReleaseParams{EventID: int64(event), HoldID: &hold, Action: action, Actor: actor}
	for _, s := range seats {
		p.Ids, p.Fences = append(p.Ids, s.ID), append(p.Fences, s.Fence)
	}
	return queries.SeatRelease(ctx, tx, p)
}

// Extend moves the end of a live hold's seats and returns those it still owns.
func Extend(ctx context.Context, tx pgx.Tx, event EventID, hold uuid.UUID, until time.Time, ids []ID) ([]ID, error) {
	return queries.SeatExtend(ctx, tx, db.SeatExtendParams{EventID: int64(event), HoldID: &hold, HeldUntil: until, Ids: ids})
}

// Block takes free seats off the sale and returns those it got.
func Block(ctx context.Context, tx pgx.Tx, event EventID, block, actor uuid.UUID, ids []ID) ([]ID, error) {
	return queries.SeatBlock(ctx, tx, db.SeatBlockParams{EventID: int64(event), BlockID: &block, Actor: actor, Ids: ids})
}

// Unblock puts the seats of a block back on sale.
func Unblock(ctx context.Context, tx pgx.Tx, event EventID, block, actor uuid.UUID, ids []ID) ([]ID, error) {
	return queries.SeatUnblock(ctx, tx, db.SeatUnblockParams{EventID: int64(event), BlockID: &block, Actor: actor, Ids: ids})
}

// Cancel frees the seats of a booking.
func Cancel(ctx context.Context, tx pgx.Tx, event EventID, booking, actor uuid.UUID, ids []ID) ([]ID, error) {
	return queries.SeatCancel(ctx, tx, db.SeatCancelParams{EventID: int64(event), BookingID: &booking, Actor: actor, Ids: ids})
}

// Sale is everything that one sale writes. With Area set it sells Quantity places of it as AreaType, the first that are free from From on,
// and no Wants. With Hold set it sells what that hold still owns, at the prices in Prices; otherwise what is
// free, at what the types cost now, and Places says whether those were picked in an area. Organizer limits it to one tenant's events,
// Trusted sells seats that need a payment, AnyChannel those of every channel; otherwise it is the buyer's channels that count. Without
// Judged nothing is sold of an event that has rules for the choice of seats.
type Sale struct {
	Event       EventID
	Organizer   *int64
	Trusted     bool
	AnyChannel  bool
	Judged      bool
	Hold        *uuid.UUID
	Booking     uuid.UUID
	Number      string
	Buyer       uuid.UUID
	Name, Email string
	Reference   *string
	Wants       []Want
	Area        *int32
	From        ID
	Quantity    int
	AreaType    string
	Places      bool
	Prices      []int64
	Codes       []string
	Key         string
	Fingerprint []byte
}

// Sold is what a sale wrote.
type Sold struct {
	Seats     []Ticket
	Total     int64
	Currency  string
	Timezone  string
	CreatedAt time.Time
}

// Ticket is one sold seat with the code that admits to it.
type Ticket struct {
	Taken
	Code string
}

// Sell runs the sale as one statement. Sold has fewer seats than Wants when somebody else has the rest: whoever called rolls back. With
// one seat no transaction is needed, because a sale of none has written nothing.
//
// This is the seam where several sales of one event may later be grouped into one statement: nothing above it would change.
func Sell(ctx context.Context, conn db.DBTX, sale Sale) (Sold, error) {
	p := db.SellParams{
		EventID: int64(sale.Event), OrganizerID: sale.Organizer, Trusted: sale.Trusted, HoldID: sale.Hold,
		BookingID: sale.Booking, Number: sale.Number, Buyer: sale.Buyer, BuyerName: sale.Name, BuyerEmail: sale.Email,
		PaymentReference: sale.Reference, Key: sale.Key, Fingerprint: sale.Fingerprint, Codes: sale.Codes,
		Prices: sale.Prices, Places: sale.Places, AnyChannel: sale.AnyChannel || sale.Hold != nil, Judged: sale.Judged,
		AreaID: sale.Area, FromSeat: sale.From, Quantity: int32(sale.Quantity), AreaType: sale.AreaType,
		Ids: []ID{}, Fences: []int64{}, Types: []string{},
	}
	for _, w := range sale.Wants {
		p.Ids, p.Fences, p.Types = append(p.Ids, w.ID), append(p.Fences, w.Fence), append(p.Types, w.Type)
	}
	if p.Prices == nil {
		p.Prices = slices.Repeat([]int64{-1}, len(sale.Wants))
	}
	rows, err := queries.Sell(ctx, conn, p)
	if err != nil || len(rows) == 0 {
		return Sold{}, err
	}
	sold := Sold{Currency: rows[0].Currency, Timezone: rows[0].Timezone, CreatedAt: rows[0].CreatedAt.UTC()}
	for _, r := range rows {
		sold.Seats = append(sold.Seats, Ticket{
			Taken: Taken{ID: r.ID, Place: Place{r.Section, r.RowLabel, r.Number}, Type: r.Type, Price: r.Price, Fence: r.Fence},
			Code:  r.Code,
		})
		sold.Total += r.Price
	}
	return sold, nil
}

// Allot puts free seats into a channel and returns those that are in it now. Their fences stay: nobody owns them any more than before.
func Allot(ctx context.Context, tx pgx.Tx, event EventID, channel int32, ids []ID) ([]ID, error) {
	return queries.SeatAllot(ctx, tx, db.SeatAllotParams{EventID: int64(event), ChannelID: channel, Ids: ids})
}

// Unallot takes seats out of a channel, whoever has them, and returns those that were in it.
func Unallot(ctx context.Context, tx pgx.Tx, event EventID, channel int32, ids []ID) ([]ID, error) {
	return queries.SeatUnallot(ctx, tx, db.SeatUnallotParams{EventID: int64(event), ChannelID: channel, Ids: ids})
}
