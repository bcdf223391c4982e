package plan

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"seatfence/seats"
)

// Bounds of a file. The seats of all sections and the places of all areas count together against seats.MaxSeats.
const (
	MaxBytes      = 32 << 20
	maxDepth      = 64 // of JSON; a plan needs 9
	maxCategories = 50
	maxParts      = 1_000 // sections and areas
	maxRows       = 20_000
	maxShapes     = 1_000
	maxPoints     = 1_000 // of one outline
	maxTags       = 16
	maxName       = 80 // bytes, as for a house
	maxCoordinate = 1e6
	maxPicks      = 4 * seats.MaxSeats
	stride        = 1_000 // seats between two looks at the context and reports of progress
)

// standard is the category of everything in a file that knows none.
const standard = "Standard"

// Options of an import. Progress, if there is one, is called with the number of seats read so far, about every thousand.
type Options struct {
	Repair   bool
	Progress func(seats int)
}

// Import reads a plan in any of the formats, which it tells by the content. What is wrong with the file is in the report and no error; an
// error means that r could not be read or ctx has ended. With a not_readable, too_large or too_many_seats the plan is empty, otherwise it
// has every seat of the file, and may be published if the report has no errors.
func Import(ctx context.Context, r io.Reader, opts Options) (Plan, Report, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return Plan{}, Report{}, fmt.Errorf("read plan: %w", err)
	}
	d := &draft{ctx: ctx, progress: opts.Progress}
	if len(data) > MaxBytes {
		d.fatal(TooLarge, "", fmt.Sprintf("a file has at most %d MiB", MaxBytes>>20))
	} else {
		d.read(data)
	}
	if err := ctx.Err(); err != nil {
		return Plan{}, Report{}, fmt.Errorf("read plan: %w", err)
	}
	d.finish(opts.Repair)
	return d.plan, d.report, nil
}

// draft is a plan while it is read.
type draft struct {
	ctx      context.Context
	progress func(int)
	plan     Plan
	report   Report
	found    int  // seats, kept or not
	rows     int  // rows, kept or not
	picks    int  // seats that the selectors of a spec name, again and again
	extra    int  // members that are kept without being understood
	dead     bool // nothing can come of it
}

func (d *draft) read(data []byte) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	switch first := bytes.TrimLeft(data, " \t\r\n"); {
	case len(first) == 0:
		d.fatal(NotReadable, "", "the file is empty")
	case first[0] == '{' || first[0] == '[':
		d.readJSON(data)
	default:
		d.readCSV(data)
	}
}

// fatal reports what makes a plan impossible.
func (d *draft) fatal(code Code, at, detail string) {
	d.report.defect(code, Error, at, detail)
	d.dead = true
}

// finish judges what was read and repairs it if asked to. After repairs it is judged again, so that the report says what is left.
func (d *draft) finish(repair bool) {
	d.limits()
	d.report.Counts = d.plan.Count()
	d.report.Counts.Seats, d.report.Counts.Rows = d.found, d.rows
	if d.dead {
		d.plan = Plan{}
	} else {
		d.compose()
		d.tidy()
		if repair {
			d.repair()
			d.report.Counts = d.plan.Count()
		}
		d.check()
	}
	if d.progress != nil {
		d.progress(d.found)
	}
	d.report.settle()
}

// room reports whether n more seats fit. It counts them either way, so that the report is exact.
func (d *draft) room(n int) bool {
	before := d.found
	d.found += n
	if before/stride != d.found/stride && d.progress != nil {
		d.progress(d.found)
	}
	return d.found <= seats.MaxSeats
}

// rowRoom is room for one row.
func (d *draft) rowRoom() bool {
	d.rows++
	return d.rows <= maxRows
}

// limits ends a plan that has more than a plan may have.
func (d *draft) limits() {
	places := d.found
	for _, a := range d.plan.Areas {
		places += max(a.Capacity, 0)
	}
	if places > seats.MaxSeats {
		d.fatal(TooManySeats, "", fmt.Sprintf("%d seats and places; a plan has at most %d", places, seats.MaxSeats))
	}
	for _, part := range []struct {
		what      string
		have, may int
	}{
		{"categories", len(d.plan.Categories), maxCategories},
		{"sections and areas", len(d.plan.Sections) + len(d.plan.Areas), maxParts},
		{"rows", d.rows, maxRows},
		{"decorations", len(d.plan.Decorations), maxShapes},
	} {
		if part.have > part.may {
			d.fatal(TooLarge, "", fmt.Sprintf("more than %d %s", part.may, part.what))
		}
	}
}

// category makes name a category unless it is one, and returns it.
func (d *draft) category(name string, at place) {
	for _, c := range d.plan.Categories {
		if c.Name == name {
			return
		}
	}
	if len(d.plan.Categories) <= maxCategories { // one too many is seen by limits, more are not worth keeping
		d.plan.Categories = append(d.plan.Categories, Category{Name: name, at: at})
	}
}

// isStage reports whether a text on a drawing names the stage.
func isStage(label string) bool {
	switch strings.ToLower(strings.TrimSpace(label)) {
	case "stage", "bühne", "escenario", "scène", "palcoscenico":
		return true
	}
	return false
}
