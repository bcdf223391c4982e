package seats

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"seatfence/db"
)

// ErrTooFew says that an area has fewer free places than asked for, also after waiting for those that others were writing.
var ErrTooFew = errors.New("too few free places")

// Patience says whether a pick waits for rows that others are writing.
type Patience bool

// A hasty pick passes over rows that others write, and never waits. A patient one waits for them, in id order, and must hold no row of
// the area before: two that wait with rows in their hands could wait for each other.
const (
	Hasty   Patience = false
	Patient Patience = true
)

// PickPlaces locks n free places of an area that are in one of the channels, 0 for none, and returns their ids in ascending order. A hasty pick looks from the cursor to
// the end and then through the whole area. ErrTooFew of a hasty pick may be wrong, as others may roll back; that of a patient one is
// "sold out", or no such area.
func PickPlaces(ctx context.Context, tx pgx.Tx, event EventID, area int32, channels []int32, cursor ID, n int, patience Patience) ([]ID, error) {
	if patience == Patient {
		ids, err := queries.SeatPickUnitsWaiting(ctx, tx, db.SeatPickUnitsWaitingParams{
			EventID: int64(event), AreaID: area, Channels: channels, Quantity: int32(n),
		})
		return enough(ids, n, err)
	}
	p := db.SeatPickUnitsParams{
		EventID: int64(event), AreaID: area, FromSeat: cursor, Channels: channels, Quantity: int32(n),
	}
	ids, err := queries.SeatPickUnits(ctx, tx, p)
	if err == nil && len(ids) < n && cursor > 0 {
		p.FromSeat = 0
		ids, err = queries.SeatPickUnits(ctx, tx, p)
	}
	return enough(ids, n, err)
}

func enough(ids []ID, n int, err error) ([]ID, error) {
	if err == nil && len(ids) < n {
		return nil, ErrTooFew
	}
	return ids, err
}
