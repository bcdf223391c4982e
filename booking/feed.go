package booking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/seats"
)

const (
	feedEvents = 200  // that one call of Number looks at
	feedBatch  = 1000 // changes in one transaction, and in one answer of Changes
	feedLease  = 1500 * time.Millisecond
	maxEpoch   = 1e12
)

// FeedTop is where an event's feed is. Epoch is opaque. With another one all that a client knows is void: its numbers, or what there is to
// sell, and to whom, are new.
type FeedTop struct {
	Epoch string `json:"epoch"`
	Seq   int64  `json:"seq"`
}

// Batch is what the changes after From up to Seq made of an event's seats, as everybody may see it: one cell for each seat and area that
// they touched. States are absolute, so that a batch may be applied to what is newer than From already.
type Batch struct {
	Event seats.EventID
	Epoch string
	From  int64
	Seq   int64
	Cells []Cell
}

// Number gives numbers to changes that have been committed, and returns them to be told to those who watch. Any number of nodes may call
// it, often: an event is numbered by the one that has its lease, or by whoever finds that over. What was numbered and never told, because
// its node died, is in Changes. One call takes up to 1,000 changes of an event; a batch that is so large says that more may wait. An event
// that fails does not keep the others.
func (s *Service) Number(ctx context.Context, node uuid.UUID) (batches []Batch, err error) {
	events, err := queries.FeedsWaiting(ctx, s.pool, db.FeedsWaitingParams{Publisher: node, MaxRows: feedEvents})
	if err != nil {
		return nil, fmt.Errorf("find changes without a number: %w", err)
	}
	var errs []error
	for _, id := range events {
		batch, err := s.number(ctx, node, seats.EventID(id))
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("number the changes of %s: %w", seats.EventID(id), err))
		case batch.Seq > batch.From:
			batches = append(batches, batch)
		}
	}
	return batches, errors.Join(errs...)
}

// number returns an empty batch if another node is numbering the event.
func (s *Service) number(ctx context.Context, node uuid.UUID, event seats.EventID) (batch Batch, err error) {
	err = db.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		from, err := queries.FeedLock(ctx, tx, int64(event))
		if db.NotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("lock feed: %w", err)
		}
		seq, err := numberNext(ctx, tx, node, event, from)
		if err != nil || seq == from {
			return err
		}
		batch, err = readBatch(ctx, tx, Caller{}, event, from, seq)
		return err
	})
	if err != nil {
		return Batch{}, err
	}
	return batch, nil
}

// numberNext gives the numbers after from to what waits, and returns the last one.
func numberNext(ctx context.Context, tx pgx.Tx, node uuid.UUID, event seats.EventID, from int64) (int64, error) {
	rows, err := queries.FeedPick(ctx, tx, db.FeedPickParams{EventID: int64(event), MaxRows: feedBatch})
	if err != nil {
		return 0, fmt.Errorf("pick changes: %w", err)
	}
	if len(rows) == 0 {
		return from, nil
	}
	numbers := db.FeedNumberParams{EventID: int64(event)}
	for i, r := range rows {
		numbers.SeatIds, numbers.Fences, numbers.Seqs = append(numbers.SeatIds, r.SeatID), append(numbers.Fences, r.Fence), append(numbers.Seqs, from+1+int64(i))
	}
	if n, err := queries.FeedNumber(ctx, tx, numbers); err != nil || int(n) != len(rows) {
		return 0, cmp.Or(err, fmt.Errorf("numbered %d of %d changes under the lock", n, len(rows)))
	}
	seq := from + int64(len(rows))
	if err := queries.FeedRaise(ctx, tx, db.FeedRaiseParams{EventID: int64(event), Seq: seq, Publisher: node, Lease: feedLease}); err != nil {
		return 0, fmt.Errorf("raise feed: %w", err)
	}
	return seq, nil
}

// readBatch reads the epoch before the cells: whoever changes the event in between makes another epoch, which replaces them.
func readBatch(ctx context.Context, tx pgx.Tx, caller Caller, event seats.EventID, from, seq int64) (Batch, error) {
	head, err := feedHead(ctx, tx, event)
	if err != nil {
		return Batch{}, err
	}
	reach, err := reachOf(ctx, tx, caller, event)
	if err != nil {
		return Batch{}, err
	}
	rows, err := queries.FeedCells(ctx, tx, db.FeedCellsParams{
		EventID: int64(event), After: from, Upto: seq, AnyChannel: reach.All, Channels: reach.Channels,
	})
	if err != nil {
		return Batch{}, fmt.Errorf("read changes: %w", err)
	}
	batch := Batch{Event: event, Epoch: epochOf(head), From: from, Seq: seq}
	var areas []int32
	for _, r := range rows {
		switch {
		case r.AreaID == nil:
			batch.Cells = append(batch.Cells, cellOf(r))
		case !slices.Contains(areas, *r.AreaID):
			areas = append(areas, *r.AreaID)
		}
	}
	if len(areas) > 0 {
		free, err := feedAreas(ctx, tx, event, reach, areas)
		if err != nil {
			return Batch{}, err
		}
		for _, a := range free {
			batch.Cells = append(batch.Cells, Cell{Area: a.Area, Free: a.Free})
		}
	}
	return batch, nil
}

// feedAreas counts what is free now, which may be ahead of the number that it is shown at: what is newer comes again.
func feedAreas(ctx context.Context, tx pgx.Tx, event seats.EventID, reach seats.Reach, ids []int32) ([]AreaFree, error) {
	rows, err := queries.FeedAreas(ctx, tx, db.FeedAreasParams{
		EventID: int64(event), Ids: ids, AnyChannel: reach.All, Channels: reach.Channels,
	})
	if err != nil {
		return nil, fmt.Errorf("count places: %w", err)
	}
	list := make([]AreaFree, len(rows))
	for i, r := range rows {
		list[i] = AreaFree{r.ID, r.Free}
	}
	return list, nil
}

func feedHead(ctx context.Context, conn db.DBTX, event seats.EventID) (db.FeedHeadsRow, error) {
	heads, err := queries.FeedHeads(ctx, conn, []int64{int64(event)})
	switch {
	case err != nil:
		return db.FeedHeadsRow{}, fmt.Errorf("read feed: %w", err)
	case len(heads) == 0:
		return db.FeedHeadsRow{}, ErrNotFound
	}
	return heads[0], nil
}

func topOf(h db.FeedHeadsRow) FeedTop { return FeedTop{epochOf(h), h.Seq} }

// epochOf names what numbers count in, the layout, and how many channels have released themselves, which no change of the event says.
func epochOf(h db.FeedHeadsRow) string {
	epoch := strconv.FormatInt(h.Epoch, 36) + "-" + strconv.Itoa(int(h.Layout))
	if h.Released > 0 {
		epoch += "-" + strconv.Itoa(int(h.Released))
	}
	return epoch
}

// FeedTops returns where the feeds of events are, without those that do not exist. It is one cheap statement for many events, by which a
// node that is told of changes finds out that it has missed some.
func (s *Service) FeedTops(ctx context.Context, events []seats.EventID) (map[seats.EventID]FeedTop, error) {
	ids := make([]int64, len(events))
	for i, id := range events {
		ids[i] = int64(id)
	}
	heads, err := queries.FeedHeads(ctx, s.pool, ids)
	if err != nil {
		return nil, answer(fmt.Errorf("read feeds: %w", err))
	}
	tops := make(map[seats.EventID]FeedTop, len(heads))
	for _, h := range heads {
		tops[seats.EventID(h.EventID)] = topOf(h)
	}
	return tops, nil
}

// Changes is what has happened to an event's seats after a number. With Reset it is nothing, because what the caller knows is void or too
// old: only a new MapState helps, which is then at Seq or later. Otherwise Top is where the feed is, and Seq below it says that there is more.
type Changes struct {
	Batch
	Top   int64
	Reset bool
}

// Changes returns the first changes after a number, at most limit (0: 1,000) before they are put together for each seat, as the caller may
// see them. epoch is that of what the caller knows; "" says that it will compare epochs itself.
func (s *Service) Changes(ctx context.Context, caller Caller, event seats.EventID, epoch string, after int64, limit int) (changes Changes, err error) {
	if limit < 1 || limit > feedBatch {
		limit = feedBatch
	}
	err = db.Snapshot(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := readEvent(ctx, tx, caller, event); err != nil {
			return err
		}
		head, err := feedHead(ctx, tx, event)
		if err != nil {
			return err
		}
		changes = Changes{Batch: Batch{Event: event, Epoch: epochOf(head), From: after, Seq: after}, Top: head.Seq}
		known := after == head.Seq
		if after >= 0 && after < head.Seq {
			if known, err = queries.FeedKnows(ctx, tx, db.FeedKnowsParams{EventID: int64(event), Seq: after + 1}); err != nil {
				return fmt.Errorf("read ledger: %w", err)
			}
		}
		switch {
		case epoch != "" && epoch != changes.Epoch, !known:
			changes.Seq, changes.Reset = head.Seq, true
		case after < head.Seq:
			changes.Batch, err = readBatch(ctx, tx, caller, event, after, min(head.Seq, after+int64(limit)))
		}
		return err
	})
	if err != nil {
		return Changes{}, answer(err)
	}
	return changes, nil
}
