package lockmgr_test

import (
	"fmt"
	"strings"
	"testing"

	"seatfence/lockmgr"
)

func BenchmarkEditAcquireRelease(b *testing.B) {
	o := newOffice(b)
	for b.Loop() {
		l := o.take("3/seats", lenaTab)
		o.release("3/seats", lenaTab, l.Token, true)
	}
	o.reportScript(b)
}

func BenchmarkEditRenew500Sessions(b *testing.B) {
	o := newOffice(b)
	var refs []lockmgr.SessionRef
	for i := range 500 {
		s := lockmgr.Session{ID: fmt.Sprint("tab ", i), Gen: 1, Node: "n", User: "u", Name: "Lena"}
		o.take(fmt.Sprint(i, "/seats"), s)
		refs = append(refs, lockmgr.SessionRef{ID: s.ID, Gen: 1})
	}
	must(b, o.rdb.ConfigResetStat(b.Context()).Err())
	for b.Loop() {
		if lost, err := o.Renew(b.Context(), root, "n", refs); err != nil || len(lost) > 0 {
			b.Fatal(len(lost), err)
		}
	}
	o.reportScript(b)
}

func BenchmarkEditEndOf500Locks(b *testing.B) {
	o := newOffice(b)
	s := lenaTab
	for b.Loop() {
		b.StopTimer()
		for i := range 500 {
			o.take(fmt.Sprint(i, "/seats"), s)
		}
		must(b, o.rdb.ConfigResetStat(b.Context()).Err())
		b.StartTimer()
		o.end(s)
		s.Gen++
	}
	o.reportScript(b)
}

// reportScript adds what Redis itself says that a script takes.
func (o office) reportScript(b *testing.B) {
	_, stat, _ := strings.Cut(o.rdb.Info(b.Context(), "commandstats").Val(), "cmdstat_evalsha:")
	_, stat, _ = strings.Cut(stat, "usec_per_call=")
	var usec float64
	if _, err := fmt.Sscanf(stat, "%f", &usec); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(usec, "script-µs")
}
