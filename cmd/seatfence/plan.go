package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"seatfence/seats/plan"
)

type planCommand struct {
	Check  checkPlan  `cmd:"" help:"Say everything that is wrong with a seat plan, and count its seats."`
	Export exportPlan `cmd:"" help:"Print a seat plan in our own format."`
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
	return plan.Import(s.ctx, file, plan.Options{Repair: f.Repair})
}

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
