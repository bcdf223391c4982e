package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"seatfence/booking"
	"seatfence/seats/plan"
)

const (
	// maxImports is how many files are read at once. The worst of 32 MiB take 370 MB of memory and six seconds.
	maxImports    = 2
	importTimeout = 60 * time.Second // for the file to arrive
)

var fileTypes = []string{echo.MIMEApplicationJSON, "text/csv", echo.MIMEOctetStream}

// stream lets the handler read a file as the body of a request, in a place and within limits of its own. Who asks is known by now.
func (s *server) stream(c echo.Context) (end func(), err error) {
	r := c.Request()
	types := r.Header.Values(echo.HeaderContentType)
	if len(types) != 1 || len(r.Header.Values(echo.HeaderContentEncoding)) > 0 {
		return nil, errFileType
	}
	if media, _, err := mime.ParseMediaType(types[0]); err != nil || !slices.Contains(fileTypes, media) {
		return nil, errFileType
	}
	if r.ContentLength > plan.MaxBytes {
		return nil, errBodyTooLarge
	}
	select {
	case s.imports <- struct{}{}:
	default:
		return nil, refuse(codeOverloaded, "the server has as many files to read as it can")
	}
	now, connection := time.Now(), http.NewResponseController(c.Response())
	err = errors.Join(connection.SetReadDeadline(now.Add(importTimeout)), connection.SetWriteDeadline(now.Add(importTimeout+writeTimeout)))
	if err != nil {
		<-s.imports
		return nil, err
	}
	call := callOf(r.Context())
	call.end()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), importTimeout+requestTimeout)
	call.end = cancel
	r = r.WithContext(ctx)
	r.Body = http.MaxBytesReader(c.Response().Writer, r.Body, plan.MaxBytes)
	c.SetRequest(r)
	return func() { <-s.imports }, nil
}

var errFileType = refuse("unsupported_media_type", "the body must be application/json, text/csv or application/octet-stream, not encoded")

// ImportPlan answers POST /v1/plans.
func (s *server) ImportPlan(ctx context.Context, r ImportPlanRequestObject) (ImportPlanResponseObject, error) {
	call, in, p := callOf(ctx), booking.PlanImport{}, r.Params
	if p.Plan != nil {
		id, err := booking.ParsePlanID(*p.Plan)
		if err != nil {
			return nil, err
		}
		in.Plan = &id
	}
	if p.Venue != nil {
		in.Venue = *p.Venue
	}
	if p.Name != nil {
		in.Name = *p.Name
	}
	var err error
	sum := sha256.New()
	in.Document, in.Report, err = plan.Import(ctx, io.TeeReader(r.Body, sum), plan.Options{Repair: p.Repair != nil && *p.Repair})
	if err != nil {
		return nil, notRead(ctx, err)
	}
	if p.DryRun != nil && *p.DryRun {
		return ImportPlan200JSONResponse{Report: in.Report}, nil
	}
	key := booking.NewIdempotency(call.key.Key, call.key.Fingerprint, sum.Sum(nil))
	made, replayed, err := s.Booking.ImportPlan(ctx, call.caller, key, in)
	v := planVersionOf(made)
	return ImportPlan201JSONResponse{
		Body: ImportedPlan{
			Plan: v.Plan, Version: v.Version, Status: v.Status, Digest: v.Digest, Counts: v.Counts, Errors: v.Errors, Warnings: v.Warnings,
			CreatedAt: v.CreatedAt, PublishedAt: v.PublishedAt, Report: in.Report,
		},
		Headers: ImportPlan201ResponseHeaders{replay(replayed)},
	}, err
}

// notRead says why a file did not come to its end.
func notRead(ctx context.Context, err error) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return errBodyTooLarge
	}
	if ctx.Err() != nil {
		return err
	}
	return notArrived(err)
}

// ListPlans answers GET /v1/plans.
func (s *server) ListPlans(ctx context.Context, r ListPlansRequestObject) (ListPlansResponseObject, error) {
	var page booking.PlanPage
	if r.Params.Cursor != nil {
		var err error
		if page, err = readCursor[booking.PlanPage](*r.Params.Cursor); err != nil {
			return nil, err
		}
	}
	n := pageSize(r.Params.Limit)
	plans, err := s.Booking.Plans(ctx, callOf(ctx).caller, page, n+1)
	if err != nil {
		return nil, err
	}
	answer := PlanList{Plans: make([]Plan, 0, n)}
	for _, p := range plans[:min(n, len(plans))] {
		answer.Plans = append(answer.Plans, planOf(p))
	}
	if len(plans) > n {
		last := plans[n-1]
		answer.NextCursor, err = cursorOf(booking.PlanPage{AfterTime: last.CreatedAt, AfterID: last.ID})
	}
	return ListPlans200JSONResponse(answer), err
}

// GetPlan answers GET /v1/plans/{plan}.
func (s *server) GetPlan(ctx context.Context, r GetPlanRequestObject) (GetPlanResponseObject, error) {
	id, err := booking.ParsePlanID(r.Plan)
	if err != nil {
		return nil, err
	}
	found, err := s.Booking.Plan(ctx, callOf(ctx).caller, id)
	return GetPlan200JSONResponse(planOf(found)), err
}

// GetPlanVersion answers GET /v1/plans/{plan}/versions/{version}.
func (s *server) GetPlanVersion(ctx context.Context, r GetPlanVersionRequestObject) (GetPlanVersionResponseObject, error) {
	id, err := booking.ParsePlanID(r.Plan)
	if err != nil {
		return nil, err
	}
	caller := callOf(ctx).caller
	version, err := s.Booking.PlanVersion(ctx, caller, id, r.Version)
	if err != nil {
		return nil, err
	}
	etag := `"` + hex.EncodeToString(version.Digest) + `"`
	if known := r.Params.IfNoneMatch; known != nil && (*known == "*" || strings.Contains(*known, etag)) {
		return planDocument{etag: etag}, nil
	}
	document, err := s.Booking.PlanDocument(ctx, caller, id, r.Version)
	return planDocument{etag, document}, err
}

// planDocument is a document as it is stored, because the digest is of its very bytes; without body the client has it already.
type planDocument struct {
	etag string
	body []byte
}

// VisitGetPlanVersionResponse writes the answer.
func (d planDocument) VisitGetPlanVersionResponse(w http.ResponseWriter) error {
	w.Header().Set("ETag", d.etag)
	w.Header().Set(echo.HeaderCacheControl, "private, no-cache") // may be kept, if it is asked for each time
	if d.body == nil {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(d.body)
	return err
}

// PublishPlan answers POST /v1/plans/{plan}/versions/{version}/publish.
func (s *server) PublishPlan(ctx context.Context, r PublishPlanRequestObject) (PublishPlanResponseObject, error) {
	id, err := booking.ParsePlanID(r.Plan)
	if err != nil {
		return nil, err
	}
	version, err := s.Booking.PublishPlan(ctx, callOf(ctx).caller, id, r.Version)
	return PublishPlan200JSONResponse(planVersionOf(version)), err
}

// ListVenues answers GET /v1/venues.
func (s *server) ListVenues(ctx context.Context, r ListVenuesRequestObject) (ListVenuesResponseObject, error) {
	var page booking.VenuePage
	if r.Params.Cursor != nil {
		var err error
		if page, err = readCursor[booking.VenuePage](*r.Params.Cursor); err != nil {
			return nil, err
		}
	}
	n := pageSize(r.Params.Limit)
	venues, err := s.Booking.Venues(ctx, callOf(ctx).caller, page, n+1)
	if err != nil {
		return nil, err
	}
	answer := VenueList{Venues: make([]Venue, 0, n)}
	for _, v := range venues[:min(n, len(venues))] {
		answer.Venues = append(answer.Venues, Venue{Name: v.Name})
	}
	if len(venues) > n {
		answer.NextCursor, err = cursorOf(booking.VenuePage{AfterID: venues[n-1].ID})
	}
	return ListVenues200JSONResponse(answer), err
}

func planOf(p booking.Plan) Plan {
	made := Plan{Id: p.ID.String(), Name: p.Name, Venue: p.Venue, CreatedAt: p.CreatedAt}
	for _, v := range p.Versions {
		made.Versions = append(made.Versions, planVersionOf(v))
	}
	return made
}

func planVersionOf(v booking.PlanVersion) PlanVersion {
	return PlanVersion{
		Plan: v.Plan.String(), Version: v.Number, Status: v.Status, Digest: hex.EncodeToString(v.Digest), Counts: v.Counts,
		Errors: v.Errors, Warnings: v.Warnings, CreatedAt: v.CreatedAt, PublishedAt: v.PublishedAt,
	}
}
