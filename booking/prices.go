package booking

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/seats"
)

// Price is what a category costs as a ticket type, by default the event's first, in minor units, from a time on or, with From nil, from the first. A later one of the
// same category and type ends it: that is a tier. Current is set in lists, for the one that counts now.
type Price struct {
	Category string     `json:"category"`
	Type     string     `json:"type"`
	From     *time.Time `json:"from,omitempty"`
	Amount   int64      `json:"amount"`
	Current  bool       `json:"current"`
}

// PriceList is an event's ticket types and prices. The first type is what is sold to whoever names none; every category has a price for
// it from the first. A category without a price for another type is not sold as that.
type PriceList struct {
	Types  []string `json:"types"`
	Prices []Price  `json:"prices"`
}

// Bounds of a price list.
const (
	maxTypes  = 20
	maxPrices = 2_000
	maxAmount = 1_000_000_000
	maxType   = 40 // bytes
)

// standardType is the only ticket type of an event that names none.
const standardType = "standard"

// named is the list with a type in every price; an event that names no types has one.
func (l PriceList) named() PriceList {
	if len(l.Types) == 0 {
		l.Types = []string{standardType}
	}
	l.Prices = slices.Clone(l.Prices)
	for i := range l.Prices {
		l.Prices[i].Type = cmp.Or(l.Prices[i].Type, l.Types[0])
	}
	return l
}

// check finds what is wrong with a price list for the given categories. The first known of its prices stand in no request.
func (l PriceList) check(categories []string, known int) error {
	if len(l.Types) == 0 || len(l.Types) > maxTypes {
		return invalid("/types", "bad_count", "between 1 and %d ticket types are needed", maxTypes)
	}
	if len(l.Prices) > maxPrices {
		return invalid("/prices", "bad_count", "at most %d prices", maxPrices)
	}
	for i, t := range l.Types {
		at := fmt.Sprintf("/types/%d", i)
		switch {
		case t == "" || len(t) > maxType:
			return invalid(at, "bad_name", "a name of 1 to %d bytes is needed", maxType)
		case slices.Contains(l.Types[:i], t):
			return invalid(at, "duplicate_type", "a ticket type of this name stands earlier")
		}
	}
	type tier struct {
		category, typ string
		from          time.Time
	}
	seen := map[tier]bool{}
	for i, p := range l.Prices {
		at := fmt.Sprintf("/prices/%d", i-known)
		switch {
		case !slices.Contains(categories, p.Category):
			return invalid(at+"/category", "unknown_category", "the event has no category of this name")
		case !slices.Contains(l.Types, p.Type):
			return invalid(at+"/type", "unknown_type", "the event has no ticket type of this name")
		case p.Amount < 0 || p.Amount > maxAmount:
			return invalid(at+"/price", "bad_price", "a price is between 0 and %d minor units", maxAmount)
		case p.From != nil && (!p.From.After(earliest) || !p.From.Before(latest)):
			return invalid(at+"/from", "bad_time", "a time lies in the years 2000 to 2199")
		}
		key := tier{p.Category, p.Type, p.start()}
		if seen[key] {
			return invalid(at, "duplicate_price", "a price of the same category, type and time stands earlier")
		}
		seen[key] = true
	}
	for _, c := range categories {
		if !seen[tier{c, l.Types[0], earliest}] {
			return invalid("/prices", "price_missing", "category %q needs a price for %q without a time", c, l.Types[0])
		}
	}
	return nil
}

// start is when the price begins, to the microsecond that Postgres keeps.
func (p Price) start() time.Time {
	if p.From == nil {
		return earliest
	}
	return p.From.UTC().Truncate(time.Microsecond)
}

// writePrices inserts types that the event does not have yet and all prices.
func writePrices(ctx context.Context, tx pgx.Tx, event seats.EventID, known int, list PriceList, categories []string) error {
	types := db.TypeInsertParams{EventID: int64(event)}
	for i := known; i < len(list.Types); i++ {
		types.Ids, types.Names = append(types.Ids, int32(i+1)), append(types.Names, list.Types[i])
	}
	if err := queries.TypeInsert(ctx, tx, types); err != nil {
		return fmt.Errorf("insert ticket types: %w", err)
	}
	rows := make([]db.PriceInsertParams, len(list.Prices))
	for i, p := range list.Prices {
		rows[i] = db.PriceInsertParams{
			EventID: int64(event), CategoryID: int32(slices.Index(categories, p.Category) + 1), TypeID: int32(slices.Index(list.Types, p.Type) + 1),
			StartsAt: p.start(), Amount: p.Amount,
		}
	}
	if _, err := queries.PriceInsert(ctx, tx, rows); err != nil {
		return fmt.Errorf("insert prices: %w", err)
	}
	return nil
}

// readPrices returns the event's price list, in the order of its categories and types.
func readPrices(ctx context.Context, conn db.DBTX, event seats.EventID) (PriceList, error) {
	types, err := queries.TypeList(ctx, conn, int64(event))
	if err != nil {
		return PriceList{}, fmt.Errorf("read ticket types: %w", err)
	}
	rows, err := queries.PriceList(ctx, conn, int64(event))
	if err != nil {
		return PriceList{}, fmt.Errorf("read prices: %w", err)
	}
	list := PriceList{Types: make([]string, len(types)), Prices: make([]Price, len(rows))}
	for i, t := range types {
		list.Types[i] = t.Name
	}
	for i, r := range rows {
		list.Prices[i] = Price{Category: r.Category, Type: r.Type, Amount: r.Amount, Current: r.Current}
		if from := r.StartsAt.UTC(); !from.Equal(earliest) {
			list.Prices[i].From = &from
		}
	}
	return list, nil
}

// Prices returns the price list of an event that the caller may know.
func (s *Service) Prices(ctx context.Context, caller Caller, event seats.EventID) (PriceList, error) {
	if _, err := s.EventHead(ctx, caller, event); err != nil {
		return PriceList{}, err
	}
	list, err := readPrices(ctx, s.pool, event)
	return list, answer(err)
}

// SetPrices replaces the price list of the organizer's event. Types that it has keep their places at the head of list.Types: what was
// sold as one stays named. Live holds keep the prices they promised.
func (s *Service) SetPrices(ctx context.Context, caller Caller, event seats.EventID, list PriceList) (PriceList, error) {
	list = list.named()
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		if err := queries.PriceListLock(ctx, tx, int64(event)); err != nil { // before the event, as a new plan does
			return fmt.Errorf("lock price list: %w", err)
		}
		if _, err := lockOwnEvent(ctx, tx, caller, event); err != nil {
			return err
		}
		old, err := readPrices(ctx, tx, event)
		if err != nil {
			return err
		}
		rows, err := queries.CategoryList(ctx, tx, int64(event))
		if err != nil {
			return fmt.Errorf("read categories: %w", err)
		}
		categories := make([]string, len(rows))
		for i, r := range rows {
			categories[i] = r.Name
		}
		if err := list.check(categories, 0); err != nil {
			return err
		}
		if len(list.Types) < len(old.Types) || !slices.Equal(list.Types[:len(old.Types)], old.Types) {
			return invalid("/types", "types_changed", "the ticket types that the event has stay as they are, before new ones")
		}
		if err := queries.PriceDelete(ctx, tx, int64(event)); err != nil {
			return fmt.Errorf("delete prices: %w", err)
		}
		if err := writePrices(ctx, tx, event, len(old.Types), list, categories); err != nil {
			return err
		}
		if list, err = readPrices(ctx, tx, event); err != nil {
			return err
		}
		return audit(ctx, tx, caller, auditPricesChanged, &event, event, map[string]PriceList{"from": old, "to": list})
	})
	return list, answer(err)
}

// now is what a category costs as a type at this moment, "" being the first, and whether it is sold as that.
func (l PriceList) now(category, typ string) (amount int64, sold bool) {
	typ = cmp.Or(typ, l.Types[0])
	i := slices.IndexFunc(l.Prices, func(p Price) bool { return p.Current && p.Category == category && p.Type == typ })
	if i < 0 {
		return 0, false
	}
	return l.Prices[i].Amount, true
}

// soldAs refuses wants whose seat is not sold as the type they name. pointer is where the one of an index stands in the request.
func (s *Service) soldAs(ctx context.Context, event seats.EventID, wants []seats.Want, pointer func(int) string) error {
	if !slices.ContainsFunc(wants, func(w seats.Want) bool { return w.Type != "" }) {
		return nil
	}
	rows, err := seats.ByID(ctx, s.pool, event, seats.Reach{All: true}, seats.IDs(wants))
	if err != nil {
		return fmt.Errorf("read seats: %w", err)
	}
	prices, err := readPrices(ctx, s.pool, event)
	if err != nil {
		return err
	}
	for i, w := range wants {
		row := slices.IndexFunc(rows, func(r seats.Row) bool { return r.ID == w.ID })
		at := pointer(i) + "/type"
		if row < 0 || w.Type == "" {
			continue
		}
		if !slices.Contains(prices.Types, w.Type) {
			return invalid(at, "unknown_type", "the event has no ticket type of this name")
		}
		if _, sold := prices.now(rows[row].Category, w.Type); !sold {
			return invalid(at, "type_not_sold", "the seat's category is not sold as this ticket type now")
		}
	}
	return nil
}

// placesSoldAs is soldAs for places of an area that could not be had.
func (s *Service) placesSoldAs(ctx context.Context, event seats.EventID, places *AreaPlaces) error {
	if places == nil || places.Type == "" {
		return nil
	}
	area, err := queries.AreaGet(ctx, s.pool, db.AreaGetParams{EventID: int64(event), ID: places.Area})
	if db.NotFound(err) {
		return ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("read area: %w", err)
	}
	rows, err := queries.PriceList(ctx, s.pool, int64(event))
	if err != nil {
		return fmt.Errorf("read prices: %w", err)
	}
	types, err := queries.TypeList(ctx, s.pool, int64(event))
	if err != nil {
		return fmt.Errorf("read ticket types: %w", err)
	}
	if !slices.ContainsFunc(types, func(t db.TypeListRow) bool { return t.Name == places.Type }) {
		return invalid("/ga/type", "unknown_type", "the event has no ticket type of this name")
	}
	sold := func(r db.PriceListRow) bool {
		return r.Current && r.CategoryID == area.CategoryID && r.Type == places.Type
	}
	if !slices.ContainsFunc(rows, sold) {
		return invalid("/ga/type", "type_not_sold", "the area's category is not sold as this ticket type now")
	}
	return nil
}

// affordable says why a lone sale sold nothing that its seat does not say: the payment. Of the type, soldAs tells.
func (s *Service) affordable(ctx context.Context, caller Caller, event Event, want seats.Want) error {
	rows, err := seats.ByID(ctx, s.pool, event.ID, seats.Reach{All: true}, []seats.ID{want.ID})
	if err != nil || len(rows) == 0 || mayBuy(caller, event.Payment, 1) {
		return err
	}
	prices, err := readPrices(ctx, s.pool, event.ID)
	if err != nil {
		return err
	}
	if amount, _ := prices.now(rows[0].Category, want.Type); amount > 0 {
		return ErrPaymentRequired
	}
	return nil
}
