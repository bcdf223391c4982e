package lockmgr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// EditLease is how long a session keeps its edit locks after the last Renew.
	EditLease = 10 * time.Second
	// EditRenewEvery leaves room for two lost renewals in a lease.
	EditRenewEvery = 3 * time.Second
	// EditSweepEvery is how often somebody must Sweep a root that is looked at.
	EditSweepEvery = 500 * time.Millisecond
	// DetachGrace is how long a page that is gone keeps its locks: a reload.
	DetachGrace = 8 * time.Second
	// EditTTL is the life of every key of edit locks in Redis after the last
	// call. A closed session's record has the same: no request is under way so
	// long.
	EditTTL = 60 * time.Second

	// editBudget limits a call of Edits, all its tries together. It runs to its
	// end without the caller's context: who goes away in the middle of a release
	// must not take it along.
	editBudget = 2 * time.Second
	// firstPause is between the first two tries to detach or end a session.
	firstPause = 20 * time.Millisecond
)

// Why a lock was released, as its event says it.
const (
	WhyUnlocked  = "unlocked"
	WhyLeft      = "left"
	WhyExpired   = "expired"
	WhyTakenOver = "taken-over"
	WhyIdle      = "idle"
	WhyWithdrawn = "withdrawn"
)

var (
	// ErrSessionClosed refuses a request of a session, or of a generation of it,
	// that has been detached or ended.
	ErrSessionClosed = errors.New("session is closed")
	// ErrInvalid refuses a resource or session that no script can be asked about.
	ErrInvalid = errors.New("not a resource or session")

	errReply = errors.New("reply that no script gives") // from data that none wrote
)

// Topic names the ordered stream of a root in Redis, whose events the locks
// write. Tag is the hash tag with its braces; the other three contain it.
type Topic struct{ Meta, Stream, Channel, Tag string }

// Session is one open page. Gen grows with each attach and is less than 2^53;
// Node is the process that has the page's socket, without spaces.
type Session struct {
	ID         string
	Gen        int64
	Node       string
	User, Name string
}

// SessionRef is a session to renew.
type SessionRef struct {
	ID  string
	Gen int64
}

// Lock is an edit lock as it was when Redis was asked. Resource is "" for all
// of a root, "item/page" for a page of an item, "/page" for one of the root.
type Lock struct {
	Resource    string
	SessionHash string // of the holder; its id is a secret
	User, Name  string
	Token       int64 // proves the lock to Release; 0 where it is another's
	Since       time.Time
	ActiveAt    time.Time // when the holder last edited anything in this root; zero for one's own
	Detached    bool      // the holder's page is gone, perhaps to come back
}

// HeldError refuses an acquire: another session holds By, which is the lock
// asked for, the group of it or, of a group, a member.
type HeldError struct {
	By          Lock
	OwnOtherTab bool // By is the same user's
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%q is locked by %s", e.By.Resource, e.By.Name)
}

// Edits are leases of edit locks. They are a courtesy to editors: what keeps a
// save from overwriting another is its fence in Postgres.
//
// A lock belongs to a session. The lock of a whole root and those of its pages
// exclude each other between sessions; one session may have both. A lock, the
// index of what its session holds and the events about both are written by one
// script. Every call sweeps leases that have ended, so none counts afterwards.
// Methods may be called by many goroutines at once; they do not end early with
// their context, but after 2 s.
type Edits struct {
	rdb   redis.UniversalClient
	topic func(root string) Topic

	lease, grace, tombstone, ttl time.Duration
}

// NewEdits returns edit locks on rdb. topic names a root's stream.
func NewEdits(rdb redis.UniversalClient, topic func(root string) Topic) *Edits {
	return &Edits{rdb: rdb, topic: topic, lease: EditLease, grace: DetachGrace, tombstone: EditTTL, ttl: EditTTL}
}

// SessionHash is what events and locks call a session.
func SessionHash(id string) string { return hash(id) }

// Acquire takes the lock of res, or says who is in the way (*HeldError); with
// takeOver all locks in the way are taken from their holders instead. A session
// that has the lock gets it again with the same token. A generation that is
// detached, ended or followed by another gets ErrSessionClosed.
//
// After another error the lock may have been taken: ask again, or end the
// session.
func (e *Edits) Acquire(ctx context.Context, root, res string, s Session, takeOver bool) (Lock, error) {
	by, err := author(s)
	if err != nil {
		return Lock{}, err
	}
	if !validResource(res) {
		return Lock{}, fmt.Errorf("%w: %q", ErrInvalid, res)
	}
	take := "0"
	if takeOver {
		take = "1"
	}
	reply, err := e.run(ctx, editsAcquire, root, hash(s.ID), s.Gen, s.Node, by, res, e.lease.Milliseconds(), take)
	if err != nil {
		return Lock{}, fmt.Errorf("acquire edit lock: %w", err)
	}
	var l Lock
	switch reply[0] {
	case "closed":
		return Lock{}, ErrSessionClosed
	case "held":
		if l, err = readLock(reply[1:]); err == nil {
			return Lock{}, &HeldError{By: l, OwnOtherTab: l.User == s.User}
		}
	default:
		l, err = ownLock(s, res, reply[1:])
	}
	if err != nil {
		return Lock{}, fmt.Errorf("acquire edit lock: %w", err)
	}
	return l, nil
}

// Release gives a lock back. It reports false, and changes nothing, where
// sessionID does not hold the lock with this token: it has ended, or is
// somebody else's by now, and what was edited under it may be lost.
func (e *Edits) Release(ctx context.Context, root, res, sessionID string, token int64) (bool, error) {
	reply, err := e.run(ctx, editsRelease, root, hash(sessionID), res, token)
	if err != nil {
		return false, fmt.Errorf("release edit lock: %w", err)
	}
	return reply[0] == "released", nil
}

// Attach gives a session's locks to generation s.Gen of it and returns them, with
// the tokens they had. An older generation gets ErrSessionClosed.
func (e *Edits) Attach(ctx context.Context, root string, s Session) ([]Lock, error) {
	by, err := author(s)
	if err != nil {
		return nil, err
	}
	reply, err := e.run(ctx, editsAttach, root, hash(s.ID), s.Gen, s.Node, by, e.lease.Milliseconds())
	if err != nil {
		return nil, fmt.Errorf("attach session: %w", err)
	}
	if reply[0] == "closed" {
		return nil, ErrSessionClosed
	}
	var locks []Lock
	for row := range slices.Chunk(reply[1:], 3) {
		l, err := ownLock(s, row[0], row[1:])
		if err != nil {
			return nil, fmt.Errorf("attach session: %w", err)
		}
		locks = append(locks, l)
	}
	return locks, nil
}

// Detach says that a session's page is gone. Its locks stay for DetachGrace and
// nobody else gets them. It does nothing where a newer generation, or another
// node's, is recorded. It tries again for 2 s.
func (e *Edits) Detach(ctx context.Context, root string, s Session) error {
	return e.insist(ctx, "detach session", editsDetach, root, s, e.grace.Milliseconds())
}

// End releases all locks of a session and refuses it and its older generations
// from now on; otherwise it is like Detach. why is one of the Why constants.
func (e *Edits) End(ctx context.Context, root string, s Session, why string) error {
	return e.insist(ctx, "end session", editsEnd, root, s, why)
}

// Renew prolongs the leases of sessions that have locks in a root and whose
// sockets are alive on node. It returns the ids of those that hold nothing
// there, or not by this generation and node: they have lost their locks.
func (e *Edits) Renew(ctx context.Context, root, node string, sessions []SessionRef) (lost []string, err error) {
	args := []any{node, e.lease.Milliseconds()}
	ids := make(map[string]string, len(sessions))
	for _, s := range sessions {
		h := hash(s.ID)
		ids[h] = s.ID
		args = append(args, h, s.Gen)
	}
	reply, err := e.run(ctx, editsRenew, root, args...)
	if err != nil {
		return nil, fmt.Errorf("renew edit locks: %w", err)
	}
	for _, h := range reply {
		lost = append(lost, ids[h])
	}
	return lost, nil
}

// Touch says that a session has really edited: see Sweep.
func (e *Edits) Touch(ctx context.Context, root, sessionID string) error {
	if _, err := e.run(ctx, editsTouch, root, hash(sessionID)); err != nil {
		return fmt.Errorf("touch edit locks: %w", err)
	}
	return nil
}

// Sweep releases the locks of sessions whose lease or grace has ended, and of
// those that edited nothing for as long as idle, unless that is 0. It returns
// when the next will be due if nothing happens, -1 if none will.
func (e *Edits) Sweep(ctx context.Context, root string, idle time.Duration) (next time.Duration, err error) {
	reply, err := e.run(ctx, editsSweep, root, idle.Milliseconds())
	if err != nil {
		return 0, fmt.Errorf("sweep edit locks: %w", err)
	}
	ms, err := strconv.ParseInt(reply[0], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("sweep edit locks: %w", err)
	}
	if ms < 0 {
		return -1, nil
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// Locks lists a root's locks as they are after event seq of epoch.
func (e *Edits) Locks(ctx context.Context, root string) (locks []Lock, epoch string, seq int64, err error) {
	reply, err := e.run(ctx, editsList, root)
	if err != nil {
		return nil, "", 0, fmt.Errorf("list edit locks: %w", err)
	}
	if seq, err = strconv.ParseInt(reply[1], 10, 64); err != nil {
		return nil, "", 0, fmt.Errorf("list edit locks: %w", err)
	}
	for row := range slices.Chunk(reply[2:], 6) {
		l, err := readLock(row)
		if err != nil {
			return nil, "", 0, fmt.Errorf("list edit locks: %w", err)
		}
		locks = append(locks, l)
	}
	return locks, reply[0], seq, nil
}

// Revoke releases a user's locks in a root: the permission to edit is withdrawn.
// It does not stop the user's next acquire; whoever allows that must look again
// at the permission after the lock was granted.
func (e *Edits) Revoke(ctx context.Context, root, user string) error {
	name, err := json.Marshal(user)
	if err != nil {
		return fmt.Errorf("revoke edit locks: %w", err)
	}
	if _, err := e.run(ctx, editsRevoke, root, `{"user":`+string(name)+`,`); err != nil {
		return fmt.Errorf("revoke edit locks: %w", err)
	}
	return nil
}

// insist runs a script that may be repeated until it has an answer.
func (e *Edits) insist(ctx context.Context, what string, script *redis.Script, root string, s Session, arg any) error {
	if _, err := author(s); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), editBudget)
	defer cancel()
	for pause := firstPause; ; pause *= 2 {
		_, err := e.try(ctx, script, root, hash(s.ID), s.Gen, s.Node, arg)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}

// run asks once.
func (e *Edits) run(ctx context.Context, script *redis.Script, root string, args ...any) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), editBudget)
	defer cancel()
	return e.try(ctx, script, root, args...)
}

// try returns what a script says, a list of strings. All scripts begin with the
// same keys and the same two arguments.
func (e *Edits) try(ctx context.Context, script *redis.Script, root string, args ...any) ([]string, error) {
	args = append([]any{e.ttl.Milliseconds(), e.tombstone.Milliseconds()}, args...)
	return script.Run(ctx, e.rdb, e.keys(root), args...).StringSlice()
}

func (e *Edits) keys(root string) []string {
	t := e.topic(root)
	keys := []string{t.Meta, t.Stream, t.Channel}
	for _, name := range []string{"locks", "index", "sessions", "due", "active", "token"} {
		keys = append(keys, t.Tag+":lk:"+name)
	}
	return keys
}

// author is a session's user as events show it.
func author(s Session) (string, error) {
	const exact = 1 << 53 // of Lua's numbers
	if s.ID == "" || s.Gen < 1 || s.Gen >= exact || s.Node == "" || strings.ContainsAny(s.Node, " \n") {
		return "", fmt.Errorf("%w: generation %d on node %q", ErrInvalid, s.Gen, s.Node)
	}
	by, err := json.Marshal(struct {
		User string `json:"user"`
		Name string `json:"name"`
	}{s.User, s.Name})
	return string(by), err
}

// validResource also keeps the scripts' JSON and their index simple.
func validResource(res string) bool {
	const longest = 100
	item, page, ok := strings.Cut(res, "/")
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}
	return res == "" || ok && page != "" && len(res) <= longest &&
		!strings.ContainsFunc(item, odd) && !strings.ContainsFunc(page, odd)
}

// ownLock reads a token and a since.
func ownLock(s Session, res string, reply []string) (Lock, error) {
	if len(reply) != 2 {
		return Lock{}, errReply
	}
	token, err := strconv.ParseInt(reply[0], 10, 64)
	if err != nil {
		return Lock{}, err
	}
	since, err := unixMilli(reply[1])
	return Lock{Resource: res, SessionHash: hash(s.ID), User: s.User, Name: s.Name, Token: token, Since: since}, err
}

// readLock reads resource, session, since, active, state and by.
func readLock(row []string) (Lock, error) {
	if len(row) != 6 {
		return Lock{}, errReply
	}
	l := Lock{Resource: row[0], SessionHash: row[1], Detached: row[4] == "detached"}
	var err1, err2 error
	l.Since, err1 = unixMilli(row[2])
	l.ActiveAt, err2 = unixMilli(row[3])
	return l, errors.Join(err1, err2, json.Unmarshal([]byte(row[5]), &l)) // its user and name
}

func unixMilli(s string) (time.Time, error) {
	ms, err := strconv.ParseInt(s, 10, 64)
	return time.UnixMilli(ms), err
}
