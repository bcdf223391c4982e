package stream_test

import (
	"os"
	"testing"

	"seatfence/db/dbtest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }
