package httpapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"seatfence/booking"
	"seatfence/seats"
)

// ListSeats answers GET /v1/events/{event}/seats.
func (s *server) ListSeats(ctx context.Context, r ListSeatsRequestObject) (ListSeatsResponseObject, error) {
	event, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	composed(r.Params.Section)
	if r.Params.Format != nil && *r.Params.Format == "compact" {
		if r.Params.Section != nil {
			return nil, &requestError{code: "invalid_parameter", detail: "a parameter breaks its rule", faults: []fault{{
				Parameter: "section", Detail: "the compact form is of the whole house",
			}}}
		}
		return s.seatStates(ctx, event)
	}
	house, err := s.Booking.Seats(ctx, callOf(ctx).caller, event, r.Params.Section)
	if err != nil {
		return nil, err
	}
	answer := seatList{
		Epoch: house.Feed.Epoch, Seq: house.Feed.Seq, Seats: make([]Seat, len(house.Seats)), Areas: sectionsOf(house.Areas),
		ServerTime: house.Event.ServerTime, Timezone: house.Event.Timezone,
	}
	for i, seat := range house.Seats {
		answer.Seats[i] = seatOf(seat)
	}
	return answer, nil
}

// seatList is the full form.
type seatList SeatList

// VisitListSeatsResponse writes the answer.
func (l seatList) VisitListSeatsResponse(w http.ResponseWriter) error {
	body, err := json.Marshal(SeatList(l))
	if err != nil {
		return err
	}
	w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	w.WriteHeader(http.StatusOK)
	_, err = w.Write(body)
	return err
}

func (s *server) seatStates(ctx context.Context, event seats.EventID) (ListSeatsResponseObject, error) {
	state, err := s.Booking.MapState(ctx, callOf(ctx).caller, event)
	if err != nil {
		return nil, err
	}
	return seatStates{zippedJSON{state.Zipped, callOf(ctx).zips}}, nil
}

// seatStates is a state as it is kept.
type seatStates struct{ zippedJSON }

// VisitListSeatsResponse writes the answer.
func (a seatStates) VisitListSeatsResponse(w http.ResponseWriter) error { return a.write(w) }

// ListChanges answers GET /v1/events/{event}/changes.
func (s *server) ListChanges(ctx context.Context, r ListChangesRequestObject) (ListChangesResponseObject, error) {
	event, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	var (
		epoch string
		after int64
		limit int32
	)
	if r.Params.Epoch != nil {
		epoch = *r.Params.Epoch
	}
	if r.Params.After != nil {
		after = *r.Params.After
	}
	if r.Params.Limit != nil {
		limit = *r.Params.Limit
	}
	changes, err := s.Booking.Changes(ctx, callOf(ctx).caller, event, epoch, after, int(limit))
	if err != nil {
		return nil, err
	}
	return ListChanges200JSONResponse{
		Epoch: changes.Epoch, From: changes.From, Seq: changes.Seq, Top: changes.Top, Reset: changes.Reset,
		Cells: append([]booking.Cell{}, changes.Cells...),
	}, nil
}

// GetMap answers GET /v1/events/{event}/map.
func (s *server) GetMap(ctx context.Context, r GetMapRequestObject) (GetMapResponseObject, error) {
	event, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	caller := callOf(ctx).caller
	layout, err := s.Booking.MapLayout(ctx, caller, event)
	if err != nil {
		return nil, err
	}
	if known, etag := r.Params.IfNoneMatch, mapTag(layout); known != nil && (*known == "*" || strings.Contains(*known, etag)) {
		return eventMap{etag: etag}, nil
	}
	drawn, err := s.Booking.Map(ctx, caller, event)
	if err != nil {
		return nil, err
	}
	return eventMap{mapTag(drawn.Layout), zippedJSON{drawn.Zipped, callOf(ctx).zips}}, nil
}

func mapTag(layout int32) string { return fmt.Sprintf(`"map-%d"`, layout) }

// eventMap is a map as it is kept; without one the client has it already.
type eventMap struct {
	etag string
	zippedJSON
}

// VisitGetMapResponse writes the answer.
func (m eventMap) VisitGetMapResponse(w http.ResponseWriter) error {
	w.Header().Set("ETag", m.etag)
	w.Header().Set(echo.HeaderCacheControl, "private, no-cache") // may be kept, if it is asked for each time
	w.Header().Add(echo.HeaderVary, echo.HeaderAcceptEncoding)
	if m.zipped == nil {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return m.write(w)
}

// zippedJSON is an answer that is kept compressed: a crowd asks for the same. Whoever does not take it so gets it unpacked.
type zippedJSON struct {
	zipped []byte
	taken  bool
}

func (z zippedJSON) write(w http.ResponseWriter) error {
	w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	if z.taken {
		w.Header().Set(echo.HeaderContentEncoding, "gzip")
		w.WriteHeader(http.StatusOK)
		_, err := w.Write(z.zipped)
		return err
	}
	r, err := gzip.NewReader(bytes.NewReader(z.zipped))
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	_, err = io.Copy(w, r)
	return err
}
