package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"seatfence/booking"
	"seatfence/seats"
)

// exact is an answer whose bodies of others are written as they are: the usual encoder would write some of their characters otherwise, and
// what is got and saved again would be another plan.
type exact struct{ body any }

func (e exact) write(w http.ResponseWriter) error {
	w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	w.WriteHeader(http.StatusOK)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(e.body)
}

// VisitGetDraftResponse writes the answer.
func (e exact) VisitGetDraftResponse(w http.ResponseWriter) error { return e.write(w) }

// VisitGetDraftPageResponse writes the answer.
func (e exact) VisitGetDraftPageResponse(w http.ResponseWriter) error { return e.write(w) }

// GetDraft answers GET /v1/events/{event}/draft.
func (s *server) GetDraft(ctx context.Context, r GetDraftRequestObject) (GetDraftResponseObject, error) {
	event, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	draft, err := s.Booking.Draft(ctx, callOf(ctx).caller, event)
	return exact{draft}, err
}

// GetDraftPage answers GET /v1/events/{event}/draft/{item}/{page}.
func (s *server) GetDraftPage(ctx context.Context, r GetDraftPageRequestObject) (GetDraftPageResponseObject, error) {
	event, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	page, err := s.Booking.DraftPage(ctx, callOf(ctx).caller, event, r.Item, r.Page)
	return exact{page}, err
}

// SaveDraft answers PUT /v1/events/{event}/draft.
func (s *server) SaveDraft(ctx context.Context, r SaveDraftRequestObject) (SaveDraftResponseObject, error) {
	event, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	body, err := readAll(ctx, r.Body)
	if err != nil {
		return nil, err
	}
	var draft booking.Draft
	if err := json.Unmarshal(body, &draft); err != nil {
		return nil, invalid("", "bad_draft", "the body is not the JSON of a draft")
	}
	saved, err := s.Booking.SaveDraft(ctx, callOf(ctx).caller, event, r.Params.EditFence, draft)
	s.saved(ctx, err, event, 0, "", saved.Revision)
	return SaveDraft200JSONResponse(savedOf(saved)), err
}

// SaveDraftPage answers PUT /v1/events/{event}/draft/{item}/{page}.
func (s *server) SaveDraftPage(ctx context.Context, r SaveDraftPageRequestObject) (SaveDraftPageResponseObject, error) {
	event, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	body, err := readAll(ctx, r.Body)
	if err != nil {
		return nil, err
	}
	saved, err := s.Booking.SaveDraftPage(ctx, callOf(ctx).caller, event, r.Params.EditFence, r.Item, r.Page, body)
	s.saved(ctx, err, event, r.Item, r.Page, saved.Revision)
	return SaveDraftPage200JSONResponse(savedOf(saved)), err
}

// readAll reads a body that streams, within the limit that it has.
func readAll(ctx context.Context, r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(r)
	if err != nil {
		return nil, notRead(ctx, err)
	}
	return body, nil
}

// saved tells the others in a configurator what was saved there, if it was.
func (s *server) saved(ctx context.Context, err error, event seats.EventID, item int32, page string, revision int64) {
	if err == nil && s.Stream != nil {
		s.Stream.Saved(ctx, event, s.who(callOf(ctx)), item, page, revision)
	}
}

func savedOf(saved booking.DraftSaved) DraftSaved {
	answer := DraftSaved{Revision: saved.Revision}
	if saved.Items != nil {
		answer.Items = &saved.Items
	}
	return answer
}

// TakeEdit answers POST /v1/events/{event}/draft/edits.
func (s *server) TakeEdit(ctx context.Context, r TakeEditRequestObject) (TakeEditResponseObject, error) {
	event, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	var item int32
	var page string
	switch b := r.Body; {
	case b.Whole != nil && (!*b.Whole || b.Item != nil || b.Page != nil):
		return nil, invalid("/whole", "whole_or_page", "the whole, or a page of it")
	case b.Whole == nil && b.Page == nil:
		return nil, invalid("/page", "page_missing", "one page of the item is edited")
	case b.Whole == nil:
		page = *b.Page
		if b.Item != nil {
			item = *b.Item
		}
	}
	fence, err := s.Booking.TakeEdit(ctx, callOf(ctx).caller, event, item, page)
	return TakeEdit200JSONResponse{Fence: fence}, err
}

// AddDraftItem answers POST /v1/events/{event}/draft/items.
func (s *server) AddDraftItem(ctx context.Context, r AddDraftItemRequestObject) (AddDraftItemResponseObject, error) {
	event, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	call := callOf(ctx)
	saved, replayed, err := s.Booking.AddDraftItem(ctx, call.caller, call.key, event, r.Params.EditFence, r.Body.Name)
	s.saved(ctx, err, event, 0, "", saved.Revision)
	return AddDraftItem201JSONResponse{Body: savedOf(saved), Headers: AddDraftItem201ResponseHeaders{replay(replayed)}}, err
}

// RemoveDraftItem answers DELETE /v1/events/{event}/draft/items/{item}.
func (s *server) RemoveDraftItem(ctx context.Context, r RemoveDraftItemRequestObject) (RemoveDraftItemResponseObject, error) {
	event, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	err = s.Booking.RemoveDraftItem(ctx, callOf(ctx).caller, event, r.Params.EditFence, r.Item)
	s.saved(ctx, err, event, 0, "", 0)
	return RemoveDraftItem204Response{}, err
}

// PublishDraft answers POST /v1/events/{event}/draft/publish.
func (s *server) PublishDraft(ctx context.Context, r PublishDraftRequestObject) (PublishDraftResponseObject, error) {
	event, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	dry := r.Params.DryRun != nil && *r.Params.DryRun
	done, err := s.Booking.PublishDraft(ctx, callOf(ctx).caller, event, r.Params.EditFence, dry)
	return PublishDraft200JSONResponse{
		Plan: done.Plan.Plan.String(), Version: done.Plan.Version,
		Seats: Redrawn{Kept: done.Kept, Added: done.Added, Dropped: done.Dropped, Renamed: done.Renamed, Recategorised: done.Recategorised},
	}, err
}
