package realtime

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// RosterLease is for how long a session is present after its node has said so last.
	RosterLease = 10 * time.Second
	// RosterGrace is for how long a session without a connection is still shown: a reload.
	RosterGrace = 5 * time.Second
	// RosterRenewEvery leaves room for two renewals that are lost.
	RosterRenewEvery = 3 * time.Second
	// CountEvery is how often a node says at most how many viewers it has.
	CountEvery = time.Second

	countLease   = 5 * time.Second
	rosterTTL    = 60 * time.Second // of every key, so that nothing outlives all nodes
	rosterMemory = 60 * time.Second // of a generation that has ended
	rosterBudget = 2 * time.Second
)

var (
	//go:embed roster.lua
	rosterSrc string
	//go:embed roster_view.lua
	rosterViewSrc string
	//go:embed roster_leave.lua
	rosterLeaveSrc string
	//go:embed roster_renew.lua
	rosterRenewSrc string
	//go:embed roster_list.lua
	rosterListSrc string
	//go:embed roster_count.lua
	rosterCountSrc string

	rosterView  = redis.NewScript(rosterSrc + rosterViewSrc)
	rosterLeave = redis.NewScript(rosterSrc + rosterLeaveSrc)
	rosterRenew = redis.NewScript(rosterSrc + rosterRenewSrc)
	rosterList  = redis.NewScript(rosterSrc + rosterListSrc)
	rosterCount = redis.NewScript(rosterCountSrc)
)

// ErrEnded refuses a session of which a later generation has taken over, or that has ended.
var ErrEnded = errors.New("the session goes on elsewhere, or has ended")

// Viewer is a person who looks at a topic, over however many tabs.
type Viewer struct {
	User string `json:"user"`
	Name string `json:"name"`
}

// Present is who looks at a topic after event Seq of Epoch.
type Present struct {
	Viewers []Viewer
	Epoch   string
	Seq     int64
}

// Visit is a session at a topic: what a Roster has to know of it.
type Visit struct {
	ID     string
	Gen    int64
	Node   string
	Viewer Viewer
}

// Roster is who looks at which topic, on all nodes. Its events viewer-joined and viewer-left, one a user, are part of the topic's stream.
type Roster struct {
	rdb  redis.UniversalClient
	node string

	lease, grace time.Duration
}

// NewRoster returns the roster that the nodes of one Redis share.
func NewRoster(rdb redis.UniversalClient, node string) *Roster {
	return &Roster{rdb: rdb, node: node, lease: RosterLease, grace: RosterGrace}
}

// View has a session look at a topic and returns who else does. It may be repeated.
func (r *Roster) View(ctx context.Context, topic string, v Visit) (Present, error) {
	viewer, err := json.Marshal(v.Viewer)
	if err != nil {
		return Present{}, fmt.Errorf("view %s: %w", topic, err)
	}
	reply, err := r.run(ctx, rosterView, topic, hashed(v.ID), v.Gen, v.Node, viewer).StringSlice()
	if err != nil {
		return Present{}, fmt.Errorf("view %s: %w", topic, err)
	}
	if len(reply) == 0 {
		return Present{}, ErrEnded
	}
	return present(topic, reply)
}

// Leave says that a session does not look at a topic any more.
func (r *Roster) Leave(ctx context.Context, topic string, v Visit) error {
	return r.gone(ctx, topic, v, "left")
}

// Detach says that a session has lost its connection: it is shown for RosterGrace more.
func (r *Roster) Detach(ctx context.Context, topic string, v Visit) error {
	return r.gone(ctx, topic, v, "detached")
}

// End says that a session is over.
func (r *Roster) End(ctx context.Context, topic string, v Visit) error {
	return r.gone(ctx, topic, v, "closed")
}

func (r *Roster) gone(ctx context.Context, topic string, v Visit, how string) error {
	if err := r.run(ctx, rosterLeave, topic, hashed(v.ID), v.Gen, v.Node, how).Err(); err != nil {
		return fmt.Errorf("%s of %s: %w", how, topic, err)
	}
	return nil
}

// Renew says that sessions at a topic are connected, and ends what is over at the topic. It returns the ids of those that it did not find: they
// have to View again. Without sessions it only sweeps.
func (r *Roster) Renew(ctx context.Context, topic string, visits []Visit) (lost []string, err error) {
	args, ids := []any{r.node}, make(map[string]string, len(visits))
	for _, v := range visits {
		ids[hashed(v.ID)] = v.ID
		args = append(args, hashed(v.ID), v.Gen)
	}
	reply, err := r.run(ctx, rosterRenew, topic, args...).StringSlice()
	if err != nil {
		return nil, fmt.Errorf("renew %s: %w", topic, err)
	}
	for _, h := range reply {
		lost = append(lost, ids[h])
	}
	return lost, nil
}

// Viewers returns who looks at a topic.
func (r *Roster) Viewers(ctx context.Context, topic string) (Present, error) {
	reply, err := r.run(ctx, rosterList, topic).StringSlice()
	if err != nil {
		return Present{}, fmt.Errorf("viewers of %s: %w", topic, err)
	}
	return present(topic, reply)
}

// Count says how many viewers this node has at a topic where nobody is named, and returns how many all nodes have.
func (r *Roster) Count(ctx context.Context, topic string, viewers int) (int, error) {
	_, _, _, prefix := TopicKeys(topic)
	ctx, cancel := context.WithTimeout(ctx, rosterBudget)
	defer cancel()
	n, err := rosterCount.Run(ctx, r.rdb, []string{prefix + ":pr:count", prefix + ":pr:counted"},
		rosterTTL.Milliseconds(), countLease.Milliseconds(), r.node, viewers).Int()
	if err != nil {
		return 0, fmt.Errorf("count %s: %w", topic, err)
	}
	return n, nil
}

func (r *Roster) run(ctx context.Context, script *redis.Script, topic string, args ...any) *redis.Cmd {
	meta, stream, channel, prefix := TopicKeys(topic)
	keys := []string{meta, stream, channel, prefix + ":pr:sessions", prefix + ":pr:users", prefix + ":pr:due"}
	ctx, cancel := context.WithTimeout(ctx, rosterBudget)
	defer cancel()
	return script.Run(ctx, r.rdb, keys, append([]any{
		rosterTTL.Milliseconds(), r.lease.Milliseconds(), r.grace.Milliseconds(), rosterMemory.Milliseconds(),
	}, args...)...)
}

func present(topic string, reply []string) (p Present, err error) {
	p.Epoch = reply[0]
	if p.Seq, err = strconv.ParseInt(reply[1], 10, 64); err != nil {
		return Present{}, fmt.Errorf("viewers of %s: %w", topic, err)
	}
	p.Viewers = make([]Viewer, len(reply)-2)
	for i, text := range reply[2:] {
		if err := json.Unmarshal([]byte(text), &p.Viewers[i]); err != nil {
			return Present{}, fmt.Errorf("viewers of %s: %w", topic, err)
		}
	}
	return p, nil
}

// hashed is how Redis knows a session, whose id is a secret.
func hashed(id string) string {
	sum := sha256.Sum256([]byte(id))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}
