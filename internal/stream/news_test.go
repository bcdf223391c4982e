package stream

import (
	"encoding/json"
	"testing"

	"seatfence/lockmgr"
)

func TestLateEndOfALockSparesTheOneThatWasTakenSince(t *testing.T) {
	t.Parallel()
	mine := &held{token: 8}
	m := &member{hash: "lena", held: map[string]*held{"3/seats": mine}, gone: true}
	r := &room{members: map[string]*member{"session": m}, locks: map[string]holder{}}
	end := func(token int64) {
		var e event
		text, _ := json.Marshal(map[string]any{
			"type": "lock-released", "resource": map[string]string{"item": "3", "page": "seats"}, "by": person{},
			"session_hash": "lena", "why": lockmgr.WhyIdle, "token": token,
		})
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatal(err)
		}
		r.hear(e)
	}
	if end(7); m.held["3/seats"] != mine {
		t.Error("the end of an earlier lock has taken it")
	}
	if end(8); len(m.held) > 0 {
		t.Error("its own end has not")
	}
}
