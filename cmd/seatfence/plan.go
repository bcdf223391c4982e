package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/google/uuid"

	"seatfence/booking"
	"seatfence/seats/plan"
)

type planCommand struct {
	Check  checkPlan  `cmd:"" help:"Say everything that is wrong with a seat plan, and count its seats."`
	Export exportPlan `cmd:"" help:"Print a seat plan in our own format."`
	Import importPlan `cmd:"" help:"Keep a seat plan as the next version of a plan in the database at DATABASE_URL."`
}

type planFile struct {
	File   string `arg:"" help:"The plan: our own JSON, a pretix seating plan, a parametric spec, or CSV."`
	Repair bool   `help:"Repair what has a plain answer, and say what was changed."`
}

func (f planFile) read(s *session) (plan.Plan, plan.Report, error) {
	file, err := os.Open(f.File)
	if err != nil {
		return plan.Plan{}, plan.Report{}, err
	}
	defer func() { _ = file.Close() }() // only read
	said := 0
	return plan.Import(s.ctx, file, plan.Options{Repair: f.Repair, Progress: func(seats int) {
		if seats >= said+progressEvery {
			said = seats
			fmt.Fprintln(s.stderr, seats, "seats read")
		}
	}})
}

// progressEvery is after how many seats of a large plan there is a sign of life.
const progressEvery = 10_000

type checkPlan struct {
	planFile
	JSON bool `name:"json" help:"Print the report as JSON."`
}

// Run prints the report, and fails if it has errors.
func (c checkPlan) Run(s *session) error {
	_, report, err := c.read(s)
	if err != nil {
		return err
	}
	if c.JSON {
		enc := json.NewEncoder(s.stdout)
		enc.SetIndent("", "  ")
		err = enc.Encode(report)
	} else {
		err = printReport(s, report)
	}
	if n := report.Errors(); err == nil && n > 0 {
		err = fmt.Errorf("the plan has %d errors", n)
	}
	return err
}

func printReport(s *session, r plan.Report) error {
	n := r.Counts
	fmt.Fprintf(s.stdout, "%d seats (%d inactive, %d accessible) in %d rows, %d tables and %d sections; %d areas for %d people; %d categories\n",
		n.Seats, n.Inactive, n.Accessible, n.Rows-n.Tables, n.Tables, n.Sections, n.Areas, n.Capacity, n.Categories)
	for _, note := range r.Notes {
		fmt.Fprintln(s.stdout, "note:", note)
	}
	table := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
	for _, t := range r.Tallies {
		fmt.Fprintf(table, "%s\t%s\t%d times\t%d seats\n", t.Severity, t.Code, t.Count, t.Seats)
	}
	if r.Repaired > 0 {
		fmt.Fprintf(table, "repaired\t\t%d times\t\n", r.Repaired)
	}
	for _, d := range r.Defects {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", d.Severity, d.Code, d.At, strings.Join(append([]string{d.Detail}, d.Also...), " "))
	}
	for _, p := range r.Repairs {
		fmt.Fprintf(table, "repaired\t%s\t%s\t%q is now %q\n", p.Code, p.At, p.From, p.To)
	}
	return table.Flush()
}

type exportPlan struct{ planFile }

// Run prints the plan, unless it could not be read. Other errors stay in it, for check to tell.
func (c exportPlan) Run(s *session) error {
	p, report, err := c.read(s)
	if err != nil {
		return err
	}
	for _, d := range report.Defects {
		if d.Code == plan.NotReadable || d.Code == plan.TooLarge || d.Code == plan.TooManySeats {
			return fmt.Errorf("%s: %s", strings.TrimSpace(d.At+" "+string(d.Code)), d.Detail)
		}
	}
	return p.Export(s.stdout)
}

type importPlan struct {
	planFile
	Organizer string `required:"" help:"Name of the organizer whose plan it is."`
	Venue     string `help:"Name of the venue, where --plan is left out; by default as the plan."`
	Name      string `help:"What the plan is called, where --plan is left out; by default as in the file, or else as the venue."`
	Plan      string `help:"Id of the plan that the file is a new version of."`
	Publish   bool   `help:"Publish the version, so that events can be made of it."`
	DryRun    bool   `help:"Only report, without a database."`
}

// Run prints the report, and on a line of its own the plan, its version and that one's status. It fails where a plan that has errors was
// to be published; without --publish such a plan is kept as a draft.
func (c importPlan) Run(s *session) error {
	document, report, err := c.read(s)
	if err != nil {
		return err
	}
	if err := printReport(s, report); err != nil || c.DryRun {
		return err
	}
	in := booking.PlanImport{Venue: c.Venue, Name: c.Name, Document: document, Report: report}
	if c.Plan != "" {
		id, err := booking.ParsePlanID(c.Plan)
		if err != nil {
			return fmt.Errorf("--plan: %w", err)
		}
		in.Plan = &id
	}
	return withOrganizer(s, c.Organizer, func(service *booking.Service, caller booking.Caller) error {
		version, _, err := service.ImportPlan(s.ctx, caller, booking.NewIdempotency("import-"+uuid.NewString()), in)
		if err == nil && c.Publish {
			version, err = service.PublishPlan(s.ctx, caller, version.Plan, version.Number)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(s.stdout, "%s version %d %s\n", version.Plan, version.Number, version.Status)
		return nil
	})
}
