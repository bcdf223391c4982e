package booking_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
)

// logged is the newest entry of the log for an action.
func logged(t *testing.T, w World, action string) (detail string) {
	t.Helper()
	err := w.Pool.QueryRow(t.Context(), "SELECT detail::text FROM audit_log WHERE action = $1 ORDER BY id DESC LIMIT 1", action).Scan(&detail)
	if err != nil {
		t.Fatal(err)
	}
	return detail
}

func TestLogTellsThatAChannelLostItsKeys(t *testing.T) {
	ctx, w := setup(t)
	made := channel(t, w, nil, partner(t, w).ID)
	if _, err := w.Service.UpdateChannel(ctx, w.Owner, w.Event, made.ID, booking.ChannelChange{Keys: &[]uuid.UUID{}}); err != nil {
		t.Fatal(err)
	}
	if detail := logged(t, w, "channel.changed"); !strings.Contains(detail, `"keys": 0`) {
		t.Errorf("the log says %s", detail)
	}
}

func TestLogTellsThePricesOfANewPlan(t *testing.T) {
	w, p, _ := planned(t)
	p.Categories = append(p.Categories, p.Categories[0])
	p.Categories[2].Name = "C"
	p.Areas[0].Category = "C"
	if _, err := redraw(t, w, p, booking.Price{Category: "C", Amount: 777}); err != nil {
		t.Fatal(err)
	}
	if detail := logged(t, w, "event.plan_changed"); !strings.Contains(detail, "777") {
		t.Errorf("the log says %s", detail)
	}
}
