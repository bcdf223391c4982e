package stream_test

import (
	"testing"

	"go.uber.org/goleak"

	"seatfence/db/dbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(withServers{m}) }

// withServers stops the servers of the tests before it is looked what is left.
type withServers struct{ m *testing.M }

func (w withServers) Run() int { return dbtest.Main(w.m) }
