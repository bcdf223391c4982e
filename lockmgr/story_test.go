package lockmgr_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatfence/db/dbtest"
)

// story is the usual way to do edit locks: a key with a long TTL for each lock,
// a set for each socket, one call after the other. It is here to show that the
// interleavings which edits survive are real. A hook runs at a named point
// between two calls; its error is the crash of the process there.
type story struct {
	t   *testing.T
	rdb *redis.Client
	at  map[string]func() error
}

const storyTTL = 30 * time.Minute

var errCrash = errors.New("process killed")

// point runs its hook once.
func (s story) point(name string) error {
	hook := s.at[name]
	delete(s.at, name)
	if hook == nil {
		return nil
	}
	return hook()
}

// acquirePage answers whether the lock was free.
func (s story) acquirePage(socket, user, item string) bool {
	ctx := s.t.Context()
	if s.holder("item:"+item) != "" {
		return false
	}
	if s.point("checked") != nil {
		return false
	}
	key := "item:" + item + ":filters"
	if !s.rdb.SetNX(ctx, key, user, storyTTL).Val() {
		return false
	}
	return s.point("set") == nil && s.track(socket, key)
}

func (s story) track(socket, key string) bool {
	ctx := s.t.Context()
	must(s.t, s.rdb.SAdd(ctx, "socket:"+socket, key).Err())
	if s.point("indexed") != nil {
		return false
	}
	return s.rdb.Expire(ctx, "socket:"+socket, storyTTL).Val()
}

// acquireGroup locks a configurator and marks each of its items.
func (s story) acquireGroup(socket, user, id string, items ...string) bool {
	ctx := s.t.Context()
	for _, item := range items {
		if s.holder("item:"+item+":filters") != "" {
			return false
		}
	}
	if s.point("checked") != nil {
		return false
	}
	key := "configurator:" + id
	if !s.rdb.SetNX(ctx, key, user, storyTTL).Val() {
		return false
	}
	for _, item := range items {
		must(s.t, s.rdb.Set(ctx, "item:"+item, user, storyTTL).Err())
		must(s.t, s.rdb.SAdd(ctx, key+":items", item).Err())
		if s.point("marked") != nil {
			return false
		}
	}
	return s.track(socket, key)
}

func (s story) unlockPage(socket, item string) {
	key := "item:" + item + ":filters"
	must(s.t, s.rdb.Del(s.t.Context(), key).Err())
	_ = s.point("deleted")
	must(s.t, s.rdb.SRem(s.t.Context(), "socket:"+socket, key).Err())
}

func (s story) disconnect(socket string) {
	ctx := s.t.Context()
	locks := s.rdb.SMembers(ctx, "socket:"+socket).Val()
	_ = s.point("read")
	for _, key := range locks {
		if strings.HasPrefix(key, "configurator:") {
			del := []string{key, key + ":items"}
			for _, item := range s.rdb.SMembers(ctx, key+":items").Val() {
				del = append(del, "item:"+item)
			}
			must(s.t, s.rdb.Del(ctx, del...).Err())
			continue
		}
		must(s.t, s.rdb.Del(ctx, key).Err())
	}
	must(s.t, s.rdb.Del(ctx, "socket:"+socket).Err())
}

func (s story) holder(key string) string { return s.rdb.Get(s.t.Context(), key).Val() }

func (s story) canEdit(user, key string) bool {
	h := s.holder(key)
	return h == "" || h == user
}

// pass lets time go by: every key comes nearer to its end.
func (s story) pass(d time.Duration) {
	ctx := s.t.Context()
	for _, key := range keys(s.t, s.rdb) {
		switch left := s.rdb.PTTL(ctx, key).Val(); {
		case left < 0:
		case left <= d:
			s.rdb.Del(ctx, key)
		default:
			s.rdb.PExpire(ctx, key, left-d)
		}
	}
}

func (s story) want(what string, ok bool) {
	s.t.Helper()
	if !ok {
		s.t.Errorf("the usual way did not lose here: %s", what)
	}
}

func TestTheUsualLocksLoseInTheseInterleavings(t *testing.T) {
	t.Parallel()
	rdb := plain(t, dbtest.OwnRedis(t))
	const page = "item:88:filters"
	for _, flaw := range []struct {
		name string
		run  func(s story)
	}{
		{"01 a close frees the lock that somebody else got after a lapse", func(s story) {
			s.acquirePage("a", "lena", "88")
			s.pass(20 * time.Minute)
			s.acquirePage("a", "lena", "89")
			s.pass(11 * time.Minute)
			s.want("Omar takes what lapsed", s.acquirePage("b", "omar", "88"))
			s.disconnect("a")
			s.want("a third takes what Omar edits", s.acquirePage("c", "mia", "88"))
		}},
		{"02 unlock forgets the index a moment too late", func(s story) {
			s.acquirePage("a", "lena", "88")
			s.at["deleted"] = func() error {
				s.acquirePage("b", "omar", "88")
				s.disconnect("a")
				return nil
			}
			s.unlockPage("a", "88")
			s.want("Omar's lock is gone", s.holder(page) == "")
		}},
		{"03 disconnect between lock and index", func(s story) {
			s.at["set"] = func() error { s.disconnect("a"); return nil }
			s.acquirePage("a", "lena", "88")
			s.want("the dead socket has a lock", s.holder(page) == "lena")
		}},
		{"04 acquire between reading and deleting the index", func(s story) {
			s.acquirePage("a", "lena", "89")
			s.at["read"] = func() error { s.acquirePage("a", "lena", "88"); return nil }
			s.disconnect("a")
			s.want("a lock that no index knows", s.holder(page) == "lena" && rdb.Exists(s.t.Context(), "socket:a").Val() == 0)
		}},
		{"05 the index ends before the lock", func(s story) {
			s.acquirePage("a", "lena", "88")
			s.pass(20 * time.Minute)
			rdb.Expire(s.t.Context(), page, storyTTL)
			s.pass(11 * time.Minute)
			s.disconnect("a")
			s.want("the close finds nothing", s.holder(page) == "lena")
		}},
		{"06 crash between index and its TTL", func(s story) {
			s.at["indexed"] = func() error { return errCrash }
			s.acquirePage("a", "lena", "88")
			s.pass(24 * time.Hour)
			s.want("an index for ever", rdb.TTL(s.t.Context(), "socket:a").Val() == -1)
		}},
		{"07 group and member both look first", func(s story) {
			s.at["checked"] = func() error { s.acquirePage("b", "omar", "88"); return nil }
			s.acquireGroup("a", "lena", "12", "88")
			s.want("both hold", s.holder("configurator:12") == "lena" && s.holder(page) == "omar")
		}},
		{"08 a group's release deletes another group's mark", func(s story) {
			s.acquireGroup("a", "lena", "12", "88", "89")
			s.acquireGroup("b", "omar", "13", "89")
			s.disconnect("a")
			s.want("a third edits in Omar's group", s.holder("configurator:13") == "omar" && s.acquirePage("c", "mia", "89"))
		}},
		{"09 the late end of a socket that came back", func(s story) {
			s.acquirePage("a1", "lena", "88")
			s.want("the new socket may edit as it is", s.canEdit("lena", page))
			s.disconnect("a1")
			s.want("Omar gets it while she types", s.acquirePage("b", "omar", "88"))
		}},
		{"10 two tabs of one user", func(s story) {
			s.acquirePage("tab1", "lena", "88")
			s.want("the second tab believes it may edit", s.canEdit("lena", page))
			s.disconnect("tab1")
			s.want("Omar edits beside the second tab", s.acquirePage("b", "omar", "88"))
		}},
		{"11 a killed process blocks for half an hour", func(s story) {
			s.acquirePage("a", "lena", "88")
			s.pass(29 * time.Minute)
			s.want("still locked", !s.acquirePage("b", "omar", "88"))
		}},
		{"12 crash in the middle of a group", func(s story) {
			s.at["marked"] = func() error { return errCrash }
			s.acquireGroup("a", "lena", "12", "88", "89")
			s.disconnect("a")
			s.want("half a group that no index knows", s.holder("item:88") == "lena" && s.holder("item:89") == "")
		}},
		{"13 keys of many slots", func(s story) {
			s.want("deleting them together is refused by a cluster", slot("configurator:12") != slot("item:88"))
		}},
	} {
		t.Run(flaw.name, func(t *testing.T) {
			must(t, rdb.FlushAll(context.Background()).Err())
			flaw.run(story{t, rdb, map[string]func() error{}})
		})
	}
}

// slot is where Redis Cluster keeps a key: CRC16 of its hash tag.
func slot(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for _, b := range []byte(key) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc % 16384)
}

func TestSlotsAreThoseOfRedisCluster(t *testing.T) {
	t.Parallel()
	// From the specification of Redis Cluster: CRC16 of "123456789" is 0x31C3.
	if got := []int{slot("123456789"), slot("a{123456789}b")}; !slices.Equal(got, []int{0x31C3, 0x31C3}) {
		t.Error(fmt.Sprint(got))
	}
}
