package booking

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/seats"
)

// Block is seats that the organizer has taken off the sale.
type Block struct {
	ID        BlockID       `json:"id"`
	Event     seats.EventID `json:"event"`
	Seats     []seats.ID    `json:"seats"`
	Reason    string        `json:"reason"`
	Timezone  string        `json:"timezone"`
	CreatedAt time.Time     `json:"created_at"`
}

// MaxBlockSeats is how many seats one block can have.
const MaxBlockSeats = 500

// Block takes free seats off the sale, all or none. Seats that are held or sold are named in the refusal.
func (s *Service) Block(ctx context.Context, caller Caller, key Idempotency, event seats.EventID, ids []seats.ID, reason string) (Block, bool, error) {
	wants, err := blockWants(ids)
	if err != nil {
		return Block{}, false, err
	}
	return once(ctx, s, event, caller, key, func(ctx context.Context) (Block, error) {
		block := Block{ID: BlockID{event, uuid.Must(uuid.NewV7())}, Event: event, Seats: ids, Reason: reason}
		err := s.inTx(ctx, func(tx pgx.Tx) error {
			timezone, err := lockOwnEvent(ctx, tx, caller, event)
			if err != nil {
				return err
			}
			block.Timezone = timezone
			if n, err := seats.Lock(ctx, tx, event, ids); err != nil || n < len(ids) {
				return cmp.Or(err, errLost)
			}
			taken, err := seats.Block(ctx, tx, event, block.ID.Key, caller.ID, ids)
			if err != nil {
				return fmt.Errorf("block seats: %w", err)
			}
			if len(taken) < len(ids) {
				return errLost
			}
			if block.CreatedAt, err = queries.BlockInsert(ctx, tx, db.BlockInsertParams{
				EventID: int64(event), ID: block.ID.Key, Reason: reason, CreatedBy: caller.ID,
			}); err != nil {
				return fmt.Errorf("insert block: %w", err)
			}
			block.CreatedAt = block.CreatedAt.UTC()
			if err := audit(ctx, tx, caller, auditBlocked, &event, block.ID, blockDetail{ids, reason}); err != nil {
				return err
			}
			return remember(ctx, tx, event, caller, key, block)
		})
		return block, s.refusal(ctx, err, caller, event, wants)
	}, recalled[Block])
}

// blockDetail is what the audit log keeps of a block.
type blockDetail struct {
	Seats  []seats.ID `json:"seats"`
	Reason string     `json:"reason"`
}

func blockWants(ids []seats.ID) ([]seats.Want, error) {
	if len(ids) == 0 || len(ids) > MaxBlockSeats {
		return nil, invalid("/seats", "bad_count", "between 1 and %d seats can be blocked at once", MaxBlockSeats)
	}
	wants := seats.Any(ids...)
	return wants, checkEach("/seats", wants)
}

// lockOwnEvent is lockEvent for what an organizer does to the seats of an event, on sale or not. It returns the event's zone.
func lockOwnEvent(ctx context.Context, tx pgx.Tx, caller Caller, id seats.EventID) (timezone string, err error) {
	if caller.Kind != Organizer {
		return "", ErrForbidden
	}
	event, err := queries.EventLockForSale(ctx, tx, db.EventLockForSaleParams{ID: int64(id), Caller: caller.ID, Organizer: true})
	switch {
	case db.NotFound(err), err == nil && !caller.knows(id, event.OrganizerID):
		return "", ErrNotFound
	case err != nil:
		return "", fmt.Errorf("lock event: %w", err)
	case event.Status == StatusCancelled:
		return "", ErrEventCancelled
	}
	return event.Timezone, nil
}

// Unblock puts the seats of a block back on sale.
func (s *Service) Unblock(ctx context.Context, caller Caller, id BlockID) error {
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := lockOwnEvent(ctx, tx, caller, id.Event); err != nil {
			return err
		}
		ids, err := queries.BlockSeats(ctx, tx, db.BlockSeatsParams{EventID: int64(id.Event), BlockID: &id.Key})
		if err != nil {
			return fmt.Errorf("read block: %w", err)
		}
		if _, err := seats.Lock(ctx, tx, id.Event, ids); err != nil {
			return fmt.Errorf("lock seats: %w", err)
		}
		block, err := queries.BlockLock(ctx, tx, db.BlockLockParams{EventID: int64(id.Event), ID: id.Key})
		switch {
		case db.NotFound(err), err == nil && block.PlanVersion != nil: // only a plan brings back what a plan has taken off
			return ErrNotFound
		case err != nil:
			return fmt.Errorf("lock block: %w", err)
		case block.RemovedAt != nil:
			return ErrBlockRemoved
		}
		if _, err := seats.Unblock(ctx, tx, id.Event, id.Key, caller.ID, ids); err != nil {
			return fmt.Errorf("unblock seats: %w", err)
		}
		if _, err := queries.BlockRemove(ctx, tx, db.BlockRemoveParams{EventID: int64(id.Event), ID: id.Key}); err != nil {
			return fmt.Errorf("remove block: %w", err)
		}
		return audit(ctx, tx, caller, auditUnblocked, &id.Event, id, blockDetail{ids, block.Reason})
	})
	return answer(err)
}
