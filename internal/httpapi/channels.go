package httpapi

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"seatfence/booking"
	"seatfence/internal/access"
	"seatfence/seats"
)

// ListChannels answers GET /v1/events/{event}/channels.
func (s *server) ListChannels(ctx context.Context, r ListChannelsRequestObject) (ListChannelsResponseObject, error) {
	event, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	list, err := s.Booking.Channels(ctx, callOf(ctx).caller, event)
	answer := ListChannels200JSONResponse{Channels: make([]Channel, len(list))}
	for i, c := range list {
		answer.Channels[i] = channelOf(c)
	}
	return answer, err
}

// CreateChannel answers POST /v1/events/{event}/channels.
func (s *server) CreateChannel(ctx context.Context, r CreateChannelRequestObject) (CreateChannelResponseObject, error) {
	event, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	b := r.Body
	if err := clean(text{"/name", &b.Name}); err != nil {
		return nil, err
	}
	made := booking.NewChannel{Name: b.Name, ReleaseBefore: seconds(b.ReleaseBeforeSeconds)}
	if b.Keys != nil {
		if made.Keys, err = keyIDs(*b.Keys); err != nil {
			return nil, err
		}
	}
	if b.Seats != nil {
		made.Seats = *b.Seats
	}
	if b.Ga != nil {
		made.Places = &booking.AreaPlaces{Area: b.Ga.Area, Quantity: b.Ga.Quantity}
	}
	call := callOf(ctx)
	channel, replayed, err := s.Booking.CreateChannel(ctx, call.caller, call.key, event, made)
	return CreateChannel201JSONResponse{Body: channelOf(channel), Headers: CreateChannel201ResponseHeaders{replay(replayed)}}, err
}

// GetChannel answers GET /v1/events/{event}/channels/{channel}.
func (s *server) GetChannel(ctx context.Context, r GetChannelRequestObject) (GetChannelResponseObject, error) {
	event, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	channel, ids, err := s.Booking.Channel(ctx, callOf(ctx).caller, event, r.Channel)
	c := channelOf(channel)
	if ids == nil {
		ids = []seats.ID{}
	}
	return GetChannel200JSONResponse{
		Id: c.Id, Name: c.Name, Keys: c.Keys, ReleaseBeforeSeconds: c.ReleaseBeforeSeconds, ReleasesAt: c.ReleasesAt, Released: c.Released,
		Timezone: c.Timezone, Total: c.Total, Free: c.Free, Held: c.Held, Booked: c.Booked, Blocked: c.Blocked, Seats: ids,
	}, err
}

// UpdateChannel answers PATCH /v1/events/{event}/channels/{channel}.
func (s *server) UpdateChannel(ctx context.Context, r UpdateChannelRequestObject) (UpdateChannelResponseObject, error) {
	event, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	b := r.Body
	if err := clean(text{"/name", b.Name}); err != nil {
		return nil, err
	}
	change := booking.ChannelChange{Name: b.Name, ReleaseBefore: seconds(b.ReleaseBeforeSeconds)}
	if b.Keys != nil {
		keys, err := keyIDs(*b.Keys)
		if err != nil {
			return nil, err
		}
		change.Keys = &keys
	}
	if b.Add != nil {
		change.Add = *b.Add
	}
	if b.Drop != nil {
		change.Drop = *b.Drop
	}
	channel, err := s.Booking.UpdateChannel(ctx, callOf(ctx).caller, event, r.Channel, change)
	return UpdateChannel200JSONResponse(channelOf(channel)), err
}

// DeleteChannel answers DELETE /v1/events/{event}/channels/{channel}.
func (s *server) DeleteChannel(ctx context.Context, r DeleteChannelRequestObject) (DeleteChannelResponseObject, error) {
	event, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	return DeleteChannel204Response{}, s.Booking.DeleteChannel(ctx, callOf(ctx).caller, event, r.Channel)
}

func seconds(n *int64) *time.Duration {
	if n == nil {
		return nil
	}
	d := time.Duration(*n) * time.Second
	return &d
}

func keyIDs(texts []string) ([]uuid.UUID, error) {
	ids := make([]uuid.UUID, len(texts))
	for i, t := range texts {
		var err error
		if ids[i], err = access.ParseID(t); err != nil {
			return nil, invalid(fmt.Sprintf("/keys/%d", i), "unknown_key", "this is no id of a key")
		}
	}
	return ids, nil
}

func channelOf(c booking.Channel) Channel {
	channel := Channel{
		Id: c.ID, Name: c.Name, Keys: make([]string, len(c.Keys)), ReleasesAt: c.ReleasesAt, Released: c.Released, Timezone: c.Timezone,
		Total: c.Total, Free: c.Free, Held: c.Held, Booked: c.Booked, Blocked: c.Blocked,
	}
	for i, k := range c.Keys {
		channel.Keys[i] = access.FormatID(k)
	}
	if c.ReleaseBefore != nil {
		n := int64(*c.ReleaseBefore / time.Second)
		channel.ReleaseBeforeSeconds = &n
	}
	return channel
}
