package booking_test

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"

	"seatfence/seats"
)

// What clients did to one seat at a time, and what they were told. Times are nanoseconds since the start of the history, those of the
// database's clock too: it is this machine's.

type action int

const (
	actHold action = iota
	actBook
	actConfirm // of the hold ref
	actRelease // of the hold ref
	actCancel  // of the booking ref
	actRead
)

var actions = [...]string{"hold", "book", "confirm", "release", "cancel", "read"}

type input struct {
	action    action
	seat      seats.ID
	ref       uuid.UUID
	call, ret int64
}

type verdict int

const (
	done verdict = iota
	refusedIt
	unknown // the caller hung up: it may have happened or not, or happen yet
)

type output struct {
	verdict verdict
	ref     uuid.UUID // of the hold or booking that was made
	fence   int64
	until   int64       // the end of a hold
	state   seats.State // that was read
}

// seatModel is what a seat may be after some of its history. owner is the hold or booking that has it; uuid.Nil one that nobody was told
// of. A hold ends between from and to, which differ where nobody was told when.
type seatModel struct {
	state    seats.State
	owner    uuid.UUID
	fence    int64
	from, to int64
}

// never is later than all times of a history, with room for sums.
const never = int64(math.MaxInt64 / 2)

// clockSlack is more than the microsecond that Postgres rounds times to.
const clockSlack = int64(2 * time.Microsecond)

// over reports whether the hold may have run out by then; live whether it may still have lived then.
func (s seatModel) over(by int64) bool   { return s.state == seats.Held && s.from <= by+clockSlack }
func (s seatModel) live(from int64) bool { return s.state == seats.Held && s.to > from-clockSlack }

func (s seatModel) ownedBy(state seats.State, ref uuid.UUID) bool {
	return s.state == state && (s.owner == ref || s.owner == uuid.Nil)
}

func (s seatModel) next(state seats.State, owner uuid.UUID) seatModel {
	return seatModel{state: state, owner: owner, fence: s.fence + 1}
}

// step returns what the seat may be after the operation; nothing if the answer is impossible. A hold that has run out may have been made
// free by the sweeper before.
func step(s seatModel, in input, out output) []seatModel {
	list := s.apply(in, out)
	if s.over(in.ret) {
		list = append(list, s.next(seats.Free, uuid.Nil).apply(in, out)...)
	}
	return list
}

func (s seatModel) apply(in input, out output) []seatModel {
	switch {
	case in.action == actRead:
		return s.read(in, out)
	case out.verdict == refusedIt:
		return s.refuse(in)
	}
	after, possible := s.write(in, out)
	switch {
	case !possible && out.verdict == unknown, !possible && in.action == actRelease:
		return []seatModel{s} // it had no effect, or had nothing to release any more
	case !possible:
		return nil
	}
	return []seatModel{after}
}

// write is the seat after the operation succeeded, if it can have.
func (s seatModel) write(in input, out output) (after seatModel, possible bool) {
	switch in.action {
	case actHold:
		after, possible = s.next(seats.Held, out.ref), s.state == seats.Free || s.over(in.ret)
		after.from, after.to = out.until, out.until
		if out.verdict == unknown {
			after.from, after.to = in.call+int64(historyTTL), never
		}
	case actBook:
		after, possible = s.next(seats.Booked, out.ref), s.state == seats.Free || s.over(in.ret)
	case actConfirm:
		after, possible = s.next(seats.Booked, out.ref), s.ownedBy(seats.Held, in.ref) && s.live(in.call)
	case actRelease:
		after, possible = s.next(seats.Free, uuid.Nil), s.ownedBy(seats.Held, in.ref)
	case actCancel:
		after, possible = s.next(seats.Free, uuid.Nil), s.ownedBy(seats.Booked, in.ref)
	}
	told := out.verdict == done && in.action <= actConfirm
	return after, possible && (!told || out.fence == after.fence)
}

// refuse lets a refusal pass only if something stood in the way at some moment between call and return.
func (s seatModel) refuse(in input) []seatModel {
	var right bool
	switch in.action {
	case actHold, actBook:
		right = s.state == seats.Booked || s.live(in.call)
	case actConfirm:
		right = !s.ownedBy(seats.Held, in.ref) || s.over(in.ret)
	case actCancel:
		right = s.state != seats.Booked || s.owner != in.ref
	}
	if !right {
		return nil
	}
	return []seatModel{s}
}

func (s seatModel) read(in input, out output) []seatModel {
	right := s.state == out.state
	switch {
	case s.state == seats.Held && out.state == seats.Held:
		right = s.live(in.call)
	case s.state == seats.Held && out.state == seats.Free:
		right = s.over(in.ret)
	}
	if !right || s.fence != out.fence {
		return nil
	}
	return []seatModel{s}
}

var saleModel = (&porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		bySeat := map[seats.ID][]porcupine.Operation{}
		for _, op := range history {
			id := op.Input.(input).seat
			bySeat[id] = append(bySeat[id], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range bySeat {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() []any { return []any{seatModel{state: seats.Free}} },
	Step: func(state, in, out any) (list []any) {
		for _, s := range step(state.(seatModel), in.(input), out.(output)) {
			list = append(list, s)
		}
		return list
	},
	DescribeOperation: func(in, out any) string {
		i, o := in.(input), out.(output)
		return fmt.Sprintf("%s seat %d ref %.4s -> %s %.4s %s fence %d", actions[i.action], i.seat, i.ref,
			[...]string{"done", "refused", "unknown"}[o.verdict], o.ref, o.state, o.fence)
	},
	DescribeState: func(state any) string { return fmt.Sprintf("%+v", state) },
}).ToModel()
