package booking

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/seats"
)

// When a hold counts as left. Nodes beat every BeatEvery.
const (
	BeatEvery   = 2 * time.Second
	beatGap     = 2 * BeatEvery    // beats further apart are not whole
	nodeSilence = 10 * time.Second // then a node is dead, if the one that says so was heard for as long
	maxPages    = 20               // of one hold
	ghostBatch  = 100              // holds in one round
	massLoss    = 20               // pages; fewer are no catastrophe, however large a part of all they are
	sessionSize = 16               // bytes
)

// Page is a tab that is, or was, connected to a node. Session is 128 random bits as 22 characters of base64url, Gen grows each time it
// connects.
type Page struct {
	Session string
	Gen     int64
	Node    uuid.UUID
}

// MassLossError says that more than half of all pages that show holds are gone at once: then it is rather the service that has lost them
// than their people who have left, and nothing is released.
type MassLossError struct{ Gone, Pages int64 }

func (e *MassLossError) Error() string {
	return fmt.Sprintf("%d of %d pages that show holds are gone: nothing is released", e.Gone, e.Pages)
}

var errPage = invalid("/session", "bad_session", "the session of a page is <session>.<generation>.<node>, as the stream gave it")

// String is "<session>.<generation>.<node>".
func (p Page) String() string { return fmt.Sprintf("%s.%d.%s", p.Session, p.Gen, p.Node) }

// ParsePage reads the form of Page.String; anything else is an InvalidError.
func ParsePage(text string) (p Page, err error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return Page{}, errPage
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(parts[0])
	if err != nil || len(raw) != sessionSize {
		return Page{}, errPage
	}
	p.Session = parts[0]
	if p.Gen, err = strconv.ParseInt(parts[1], 10, 64); err != nil || p.Gen < 1 {
		return Page{}, errPage
	}
	if p.Node, err = uuid.Parse(parts[2]); err != nil || p.String() != text {
		return Page{}, errPage
	}
	return p, nil
}

// ShowHold says that a page of the hold's own buyer shows it: from now on the hold is released when all such pages have gone. A connection
// older than the recorded one changes nothing, nor does a page beyond the twentieth. ErrNotFound, ErrHoldExpired or ErrHoldClosed for a hold that cannot be shown as open.
func (s *Service) ShowHold(ctx context.Context, caller Caller, id HoldID, page Page) error {
	n, err := queries.HoldPageShow(ctx, s.pool, db.HoldPageShowParams{
		EventID: int64(id.Event), HoldID: id.Key, Buyer: caller.ID, Session: page.Session, Gen: page.Gen, Node: page.Node, MaxPages: maxPages,
	})
	if n > 0 || err != nil {
		return answer(err)
	}
	row, err := queries.HoldGet(ctx, s.pool, db.HoldGetParams{EventID: int64(id.Event), ID: id.Key})
	switch {
	case db.NotFound(err), err == nil && row.Hold.Buyer != caller.ID:
		return ErrNotFound
	case err != nil:
		return answer(fmt.Errorf("read hold: %w", err))
	case row.Hold.Status == HoldExpired, row.Hold.Status == HoldOpen && row.Over:
		return ErrHoldExpired
	case row.Hold.Status != HoldOpen:
		return ErrHoldClosed
	}
	return nil
}

// PagesGone notes that pages were seen to go: closed, or silent for too long. It means exactly these connections: a page that is connected
// again, or elsewhere, stays. Saying it twice changes nothing, and is right for a page that closed while its request for a hold was on its way.
func (s *Service) PagesGone(ctx context.Context, pages []Page) error {
	sessions, gens, nodes := columns(pages)
	_, err := queries.HoldPagesGone(ctx, s.pool, db.HoldPagesGoneParams{Sessions: sessions, Gens: gens, Nodes: nodes})
	return answer(err)
}

// PagesBack notes that pages have connected, and where. An older connection than the recorded one changes nothing.
func (s *Service) PagesBack(ctx context.Context, pages []Page) error {
	sessions, gens, nodes := columns(pages)
	_, err := queries.HoldPagesBack(ctx, s.pool, db.HoldPagesBackParams{Sessions: sessions, Gens: gens, Nodes: nodes})
	return answer(err)
}

func columns(pages []Page) (sessions []string, gens []int64, nodes []uuid.UUID) {
	sessions, gens, nodes = make([]string, len(pages)), make([]int64, len(pages)), make([]uuid.UUID, len(pages))
	for i, p := range pages {
		sessions[i], gens[i], nodes[i] = p.Session, p.Gen, p.Node
	}
	return sessions, gens, nodes
}

// Beat says that a node lives. fresh is true for a node that was not known: the first time, and after others took it for dead. Then their
// pages count as gone, and the node says which it still has with PagesBack.
func (s *Service) Beat(ctx context.Context, node uuid.UUID) (fresh bool, err error) {
	fresh, err = queries.NodeBeat(ctx, s.pool, db.NodeBeatParams{ID: node, Gap: beatGap})
	return fresh, answer(err)
}

// DeadNodes forgets nodes that have not beaten for 10 s; their pages are gone from now on. Only a node whose own beats came all that time
// can tell: while the database was away from everybody, nobody died. It returns those it found.
func (s *Service) DeadNodes(ctx context.Context, node uuid.UUID) (dead []uuid.UUID, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		dead, err = queries.NodesDead(ctx, tx, db.NodesDeadParams{Me: node, Silence: nodeSilence, Gap: beatGap})
		if err != nil || len(dead) == 0 {
			return err
		}
		return forget(ctx, tx, dead)
	})
	return dead, answer(err)
}

// Leave forgets a node that stops. Its pages are gone from now on, and have the usual time to come back elsewhere.
func (s *Service) Leave(ctx context.Context, node uuid.UUID) error {
	return answer(s.inTx(ctx, func(tx pgx.Tx) error { return forget(ctx, tx, []uuid.UUID{node}) }))
}

func forget(ctx context.Context, tx pgx.Tx, nodes []uuid.UUID) error {
	if _, err := queries.NodesDelete(ctx, tx, nodes); err != nil {
		return fmt.Errorf("forget nodes: %w", err)
	}
	if _, err := queries.HoldPagesOfNodesGone(ctx, tx, nodes); err != nil {
		return fmt.Errorf("mark pages of nodes: %w", err)
	}
	return nil
}

// ReleaseGhosts frees the seats of holds that were shown on pages, all of which have been gone for longer than grace, unless they are being
// paid for. It returns how many it ended; one that fails does not keep the others. A MassLossError says that it ended none because of that.
func (s *Service) ReleaseGhosts(ctx context.Context, grace time.Duration) (ended int, err error) {
	left, err := queries.HoldsLeft(ctx, s.pool, db.HoldsLeftParams{Grace: grace, MaxRows: ghostBatch})
	if err != nil || len(left) == 0 {
		return 0, answer(err)
	}
	counts, err := queries.HoldPageCounts(ctx, s.pool)
	if err != nil {
		return 0, answer(fmt.Errorf("count pages of holds: %w", err))
	}
	if counts.Gone >= massLoss && 2*counts.Gone > counts.Pages {
		return 0, &MassLossError{counts.Gone, counts.Pages}
	}
	var errs []error
	for _, h := range left {
		done, err := s.releaseGhost(ctx, HoldID{seats.EventID(h.EventID), h.ID}, grace)
		if err != nil && !db.LockTimedOut(err) {
			errs = append(errs, fmt.Errorf("release a hold that was left: %w", err))
		}
		ended += done
	}
	return ended, errors.Join(errs...)
}

// releaseGhost ends one hold, if it is still left and nobody else is writing it.
func (s *Service) releaseGhost(ctx context.Context, id HoldID, grace time.Duration) (done int, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		_, err := queries.HoldLockLeft(ctx, tx, db.HoldLockLeftParams{EventID: int64(id.Event), ID: id.Key})
		if db.NotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		pages, err := queries.HoldPagesLock(ctx, tx, db.HoldPagesLockParams{EventID: int64(id.Event), HoldID: id.Key, Grace: grace})
		if err != nil || len(pages) == 0 {
			return err
		}
		for _, longGone := range pages {
			if !longGone {
				return nil
			}
		}
		done = 1
		return endHold(ctx, tx, id, HoldReleased, nil)
	})
	if err != nil {
		return 0, err
	}
	return done, nil
}
