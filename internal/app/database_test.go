package app

import (
	"errors"
	"testing"

	"seatfence/db"
	"seatfence/internal/config"
)

func TestEveryReasonAgainstAServerIsGiven(t *testing.T) {
	t.Parallel()
	sound := db.ServerSettingsRow{SynchronousCommit: "on", Fsync: "on", Version: 150018}
	if got := refusals(config.Database{}, sound, sound); got != nil {
		t.Errorf("a sound server is refused: %v", got)
	}
	remote := sound
	remote.SynchronousCommit = "remote_apply"
	if got := refusals(config.Database{}, remote, sound); got != nil {
		t.Errorf("a server with a synchronous standby is refused: %v", got)
	}
	bad := db.ServerSettingsRow{SynchronousCommit: "off", Fsync: "off", Version: 130004, Standby: true}
	if got := refusals(config.Database{}, bad, bad); len(got) != 5 {
		t.Errorf("%d reasons, want 5: %v", len(got), errors.Join(got...))
	}
	if got := refusals(config.Database{AllowUnsafeFsync: true}, bad, bad); len(got) != 4 {
		t.Errorf("%d reasons without fsync, want 4: %v", len(got), errors.Join(got...))
	}
}
