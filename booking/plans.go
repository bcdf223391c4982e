package booking

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"golang.org/x/text/unicode/norm"

	"seatfence/db"
	"seatfence/seats/plan"
)

// The statuses of a version of a plan. A draft has errors and can only be replaced by another version; a published version never changes.
const (
	PlanDraft     = "draft"
	PlanValidated = "validated"
	PlanPublished = "published"
)

// maxPlanVersions is how many versions of a plan are listed.
const maxPlanVersions = 100

// Plan is a drawing of a venue in its versions, the newest first: at most 100 of them, and in a list of plans the newest alone.
type Plan struct {
	ID        PlanID
	Venue     string
	Name      string
	CreatedAt time.Time
	Versions  []PlanVersion
}

// PlanVersion is one state of a plan. Digest is the SHA-256 of its document.
type PlanVersion struct {
	Plan        PlanID
	Number      int32
	Status      string
	Digest      []byte
	Counts      plan.Counts
	Errors      int
	Warnings    int
	CreatedAt   time.Time
	PublishedAt *time.Time
}

// PlanImport is a document to be kept, with the report of its import: as a version of Plan, or else of the plan that has the name at
// Venue, which is made if there is none. A plan whose Name is left out is called what the document says, or as the venue; a venue that is
// left out, as the plan.
type PlanImport struct {
	Plan     *PlanID
	Venue    string
	Name     string
	Document plan.Plan
	Report   plan.Report
}

// PlanError says that a file gave no plan. Its report says why.
type PlanError struct{ Report plan.Report }

func (e *PlanError) Error() string { return "the file is no plan that can be read" }

// ImportPlan keeps a document as the next version of a plan: validated if its report has no errors, a draft otherwise. The document of the
// newest version once more is that version, and nothing is added. Idempotency keys are those of event 0.
func (s *Service) ImportPlan(ctx context.Context, caller Caller, key Idempotency, in PlanImport) (PlanVersion, bool, error) {
	if err := mayPlan(caller); err != nil {
		return PlanVersion{}, false, err
	}
	if in.Report.Unreadable() {
		return PlanVersion{}, false, &PlanError{in.Report}
	}
	if err := in.settle(); err != nil {
		return PlanVersion{}, false, err
	}
	next, document, err := in.version()
	if err != nil {
		return PlanVersion{}, false, err
	}
	return once(ctx, s, 0, caller, key, func(ctx context.Context) (made PlanVersion, err error) {
		err = s.inTx(ctx, func(tx pgx.Tx) error {
			if next.Plan, err = ensurePlan(ctx, tx, caller.Organizer, in); err != nil {
				return err
			}
			if made, err = addVersion(ctx, tx, caller, next, document); err != nil {
				return err
			}
			return remember(ctx, tx, 0, caller, key, made)
		})
		return made, err
	}, recalled[PlanVersion])
}

// mayPlan refuses who may not see all that the organizer has.
func mayPlan(caller Caller) error {
	if caller.Kind != Organizer || caller.Events != nil {
		return ErrForbidden
	}
	return nil
}

// settle brings the names into the form in which they are stored.
func (in *PlanImport) settle() (err error) {
	if in.Plan != nil {
		if in.Venue != "" || in.Name != "" {
			return invalid("", "venue_of_plan", "a plan that is there has its venue and its name already")
		}
		return nil
	}
	in.Name = cmp.Or(in.Name, in.Document.Name, in.Venue)
	in.Venue = cmp.Or(in.Venue, in.Name)
	if in.Venue == "" {
		return invalid("", "venue_missing", "the file has no name, so the plan needs one, or its venue, or the id of a plan")
	}
	if in.Name, err = cleanTitle(in.Name); err == nil {
		in.Venue, err = cleanTitle(in.Venue)
	}
	return err
}

func cleanTitle(name string) (string, error) {
	visible := func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }
	name = norm.NFC.String(strings.TrimSpace(name))
	if !utf8.ValidString(name) || !Plain(name) || !strings.ContainsFunc(name, visible) || utf8.RuneCountInString(name) > MaxNameRunes {
		return "", invalid("", "bad_name", "a name has 1 to %d characters, without control and direction characters", MaxNameRunes)
	}
	return name, nil
}

// version is the version to be, and its document as it is stored.
func (in *PlanImport) version() (PlanVersion, []byte, error) {
	var zipped bytes.Buffer
	sum, zip := sha256.New(), gzip.NewWriter(&zipped)
	if err := in.Document.Export(io.MultiWriter(sum, zip)); err != nil {
		return PlanVersion{}, nil, err
	}
	if err := zip.Close(); err != nil {
		return PlanVersion{}, nil, fmt.Errorf("compress plan: %w", err)
	}
	next := PlanVersion{
		Status: PlanValidated, Digest: sum.Sum(nil), Counts: in.Report.Counts, Errors: in.Report.Errors(), Warnings: in.Report.Warnings(),
	}
	if next.Errors > 0 {
		next.Status = PlanDraft
	}
	return next, zipped.Bytes(), nil
}

// ensurePlan returns the plan that the import is for, with its row or its venue's locked.
func ensurePlan(ctx context.Context, tx pgx.Tx, organizer int64, in PlanImport) (PlanID, error) {
	if in.Plan != nil {
		id, err := queries.PlanLock(ctx, tx, db.PlanLockParams{ID: int64(*in.Plan), OrganizerID: organizer})
		if db.NotFound(err) {
			return 0, ErrNotFound
		}
		return PlanID(id), err
	}
	venue, err := queries.VenueEnsure(ctx, tx, db.VenueEnsureParams{OrganizerID: organizer, Name: in.Venue})
	if err != nil {
		return 0, fmt.Errorf("ensure venue: %w", err)
	}
	id, err := queries.PlanOfVenue(ctx, tx, db.PlanOfVenueParams{VenueID: venue, Name: in.Name})
	if db.NotFound(err) {
		id = rand.Int64N(math.MaxInt64) + 1
		err = queries.PlanInsert(ctx, tx, db.PlanInsertParams{ID: id, OrganizerID: organizer, VenueID: venue, Name: in.Name})
	}
	if err != nil {
		return 0, fmt.Errorf("ensure plan: %w", err)
	}
	return PlanID(id), nil
}

// addVersion returns the plan's newest version if next is the same, and adds next otherwise. The same document with other errors is not:
// a file can come right without its plan changing.
func addVersion(ctx context.Context, tx pgx.Tx, caller Caller, next PlanVersion, document []byte) (PlanVersion, error) {
	newest, err := queries.PlanVersions(ctx, tx, db.PlanVersionsParams{PlanID: int64(next.Plan), MaxRows: 1})
	if err != nil {
		return next, fmt.Errorf("read newest version: %w", err)
	}
	next.Number = 1
	for _, row := range newest {
		if bytes.Equal(row.Digest, next.Digest) && int(row.Errors) == next.Errors {
			return planVersionOf(db.PlanVersionGetRow(row))
		}
		next.Number = row.Number + 1
	}
	counts, err := json.Marshal(next.Counts)
	if err != nil {
		return next, fmt.Errorf("encode counts: %w", err)
	}
	at, err := queries.PlanVersionInsert(ctx, tx, db.PlanVersionInsertParams{
		PlanID: int64(next.Plan), Number: next.Number, Status: next.Status, Document: document, Digest: next.Digest, Counts: counts,
		Errors: int32(next.Errors), Warnings: int32(next.Warnings), CreatedBy: caller.ID,
	})
	if err != nil {
		return next, fmt.Errorf("insert version: %w", err)
	}
	next.CreatedAt = at.UTC()
	return next, audit(ctx, tx, caller, auditPlanImported, nil, next.Plan, versionDetail{next.Number, next.Status})
}

// versionDetail is what the audit log keeps of a version.
type versionDetail struct {
	Version int32  `json:"version"`
	Status  string `json:"status"`
}

// PublishPlan makes a validated version one that events can be made of. Once more it changes nothing.
func (s *Service) PublishPlan(ctx context.Context, caller Caller, id PlanID, number int32) (version PlanVersion, err error) {
	if err := mayPlan(caller); err != nil {
		return version, err
	}
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		row, err := queries.PlanVersionPublish(ctx, tx, db.PlanVersionPublishParams{PlanID: int64(id), Number: number, OrganizerID: caller.Organizer})
		if db.NotFound(err) {
			if version, err = readPlanVersion(ctx, tx, caller, id, number); err == nil && version.Status == PlanDraft {
				err = ErrPlanHasErrors
			}
			return err
		}
		if err != nil {
			return fmt.Errorf("publish version: %w", err)
		}
		if version, err = planVersionOf(db.PlanVersionGetRow(row)); err != nil {
			return err
		}
		return audit(ctx, tx, caller, auditPlanPublished, nil, id, versionDetail{number, version.Status})
	})
	return version, answer(err)
}

// PlanPage is where a list of plans goes on: after the plan that was made then and has that id.
type PlanPage struct {
	AfterTime time.Time `json:"t"`
	AfterID   PlanID    `json:"i"`
}

// Plans lists the organizer's plans by when they were made.
func (s *Service) Plans(ctx context.Context, caller Caller, page PlanPage, n int) ([]Plan, error) {
	if err := mayPlan(caller); err != nil {
		return nil, err
	}
	rows, err := queries.PlanList(ctx, s.pool, db.PlanListParams{
		OrganizerID: caller.Organizer, AfterTime: page.AfterTime, AfterID: int64(page.AfterID), MaxRows: int32(n),
	})
	if err != nil {
		return nil, answer(fmt.Errorf("list plans: %w", err))
	}
	plans := make([]Plan, len(rows))
	for i, r := range rows {
		newest, err := planVersionOf(db.PlanVersionGetRow{
			PlanID: r.PlanID, Number: r.Number, Status: r.Status, Digest: r.Digest, Counts: r.Counts, Errors: r.Errors, Warnings: r.Warnings,
			CreatedAt: r.CreatedAt, PublishedAt: r.PublishedAt,
		})
		if err != nil {
			return nil, err
		}
		plans[i] = Plan{ID: PlanID(r.ID), Venue: r.Venue, Name: r.Name, CreatedAt: r.MadeAt.UTC(), Versions: []PlanVersion{newest}}
	}
	return plans, nil
}

// Plan returns a plan with its versions.
func (s *Service) Plan(ctx context.Context, caller Caller, id PlanID) (found Plan, err error) {
	if err := mayPlan(caller); err != nil {
		return Plan{}, err
	}
	err = db.Snapshot(ctx, s.pool, func(tx pgx.Tx) error {
		row, err := queries.PlanGet(ctx, tx, db.PlanGetParams{ID: int64(id), OrganizerID: caller.Organizer})
		if db.NotFound(err) {
			return ErrNotFound
		}
		if err != nil {
			return fmt.Errorf("read plan: %w", err)
		}
		found = Plan{ID: id, Venue: row.Venue, Name: row.Name, CreatedAt: row.CreatedAt.UTC()}
		versions, err := queries.PlanVersions(ctx, tx, db.PlanVersionsParams{PlanID: int64(id), MaxRows: maxPlanVersions})
		if err != nil {
			return fmt.Errorf("list versions: %w", err)
		}
		for _, r := range versions {
			version, err := planVersionOf(db.PlanVersionGetRow(r))
			if err != nil {
				return err
			}
			found.Versions = append(found.Versions, version)
		}
		return nil
	})
	return found, answer(err)
}

// PlanVersion returns one version of a plan.
func (s *Service) PlanVersion(ctx context.Context, caller Caller, id PlanID, number int32) (PlanVersion, error) {
	if err := mayPlan(caller); err != nil {
		return PlanVersion{}, err
	}
	version, err := readPlanVersion(ctx, s.pool, caller, id, number)
	return version, answer(err)
}

func readPlanVersion(ctx context.Context, conn db.DBTX, caller Caller, id PlanID, number int32) (PlanVersion, error) {
	row, err := queries.PlanVersionGet(ctx, conn, db.PlanVersionGetParams{PlanID: int64(id), Number: number, OrganizerID: caller.Organizer})
	if db.NotFound(err) {
		return PlanVersion{}, ErrNotFound
	}
	if err != nil {
		return PlanVersion{}, fmt.Errorf("read version: %w", err)
	}
	return planVersionOf(row)
}

// PlanDocument returns the document of a version: the bytes that its digest is of. They never change.
func (s *Service) PlanDocument(ctx context.Context, caller Caller, id PlanID, number int32) ([]byte, error) {
	if err := mayPlan(caller); err != nil {
		return nil, err
	}
	document, err := readDocument(ctx, s.pool, caller, id, number)
	return document, answer(err)
}

func readDocument(ctx context.Context, conn db.DBTX, caller Caller, id PlanID, number int32) ([]byte, error) {
	zipped, err := queries.PlanDocument(ctx, conn, db.PlanDocumentParams{PlanID: int64(id), Number: number, OrganizerID: caller.Organizer})
	if db.NotFound(err) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read document: %w", err)
	}
	unzip, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, fmt.Errorf("decompress document: %w", err)
	}
	document, err := io.ReadAll(unzip)
	if err != nil {
		return nil, fmt.Errorf("decompress document: %w", err)
	}
	return document, nil
}

// readPlan returns a version of a plan as it is drawn.
func readPlan(ctx context.Context, conn db.DBTX, caller Caller, id PlanID, number int32) (plan.Plan, error) {
	document, err := readDocument(ctx, conn, caller, id, number)
	if err != nil {
		return plan.Plan{}, err
	}
	drawn, _, err := plan.Import(ctx, bytes.NewReader(document), plan.Options{})
	return drawn, err
}

// publishedPlan is readPlan for what an event can be sold from. pointer is where the request names the plan.
func publishedPlan(ctx context.Context, conn db.DBTX, caller Caller, pointer string, id PlanID, number int32) (plan.Plan, error) {
	version, err := readPlanVersion(ctx, conn, caller, id, number)
	switch {
	case errors.Is(err, ErrNotFound):
		return plan.Plan{}, invalid(pointer, "unknown_plan", "there is no such version of a plan")
	case err != nil:
		return plan.Plan{}, err
	case version.Status != PlanPublished:
		return plan.Plan{}, invalid(pointer, "plan_not_published", "the version of the plan is not published")
	}
	return readPlan(ctx, conn, caller, id, number)
}

// VenuePage is where a list of venues goes on.
type VenuePage struct {
	AfterID int64 `json:"i"`
}

// Venue is a place that plans are of.
type Venue struct {
	ID   int64
	Name string
}

// Venues lists the organizer's venues in the order in which they were made.
func (s *Service) Venues(ctx context.Context, caller Caller, page VenuePage, n int) ([]Venue, error) {
	if err := mayPlan(caller); err != nil {
		return nil, err
	}
	rows, err := queries.VenueList(ctx, s.pool, db.VenueListParams{OrganizerID: caller.Organizer, AfterID: page.AfterID, MaxRows: int32(n)})
	if err != nil {
		return nil, answer(fmt.Errorf("list venues: %w", err))
	}
	venues := make([]Venue, len(rows))
	for i, r := range rows {
		venues[i] = Venue(r)
	}
	return venues, nil
}

func planVersionOf(r db.PlanVersionGetRow) (PlanVersion, error) {
	v := PlanVersion{
		Plan: PlanID(r.PlanID), Number: r.Number, Status: r.Status, Digest: r.Digest, Errors: int(r.Errors), Warnings: int(r.Warnings),
		CreatedAt: r.CreatedAt.UTC(),
	}
	if r.PublishedAt != nil {
		at := r.PublishedAt.UTC()
		v.PublishedAt = &at
	}
	if err := json.Unmarshal(r.Counts, &v.Counts); err != nil {
		return v, fmt.Errorf("decode counts of version: %w", err)
	}
	return v, nil
}
