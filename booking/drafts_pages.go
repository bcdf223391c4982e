package booking

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"seatfence/seats/plan"
)

// The pages of a draft. Those of item 0, the event, are variables and plan; every other item is a section with the rest.
const (
	PageVariables = "variables" // draftVariables
	PagePlan      = "plan"      // a document of a plan, without sections
	PageDetails   = "details"   // a section of such a document without its rows
	PagePrices    = "prices"    // draftPrices: what the categories of the section cost
	PageSeats     = "seats"     // {"rows": …} of the section
)

// pageOf reports whether an item can have a page of this name.
func pageOf(item int32, page string) bool {
	if item == 0 {
		return page == PageVariables || page == PagePlan
	}
	return item > 0 && (page == PageDetails || page == PagePrices || page == PageSeats)
}

// draftVariables are the settings of the event that its draft can change. An order limit of 0 is none.
type draftVariables struct {
	Name         *string    `json:"name"`
	SaleStartsAt *time.Time `json:"sale_starts_at"`
	SaleEndsAt   *time.Time `json:"sale_ends_at"`
	OrderLimit   *int       `json:"order_limit"`
	OrphanRule   *bool      `json:"orphan_rule"`
}

// draftPrices are what categories cost as ticket types, from the first.
type draftPrices struct {
	Prices []draftPrice `json:"prices"`
}

type draftPrice struct {
	Category string `json:"category"`
	Type     string `json:"type"`
	Amount   int64  `json:"amount"`
}

// elsewhere are the defects of a lone page that other pages may have put right; publishing looks at them all.
var elsewhere = []plan.Code{plan.NoSeats, plan.UnknownCategory}

// encodePage writes a page in one way only: compact, and text as it is.
func encodePage(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode page: %w", err)
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// splitPlan is the document's page of a plan, and its sections as items without numbers. Prices are those that the event has.
func splitPlan(drawn plan.Plan, prices PriceList) (page json.RawMessage, items []DraftItem, err error) {
	for _, section := range drawn.Sections {
		item := DraftItem{}
		if item.Details, item.Seats, err = splitSection(section); err != nil {
			return nil, nil, err
		}
		if item.Prices, err = encodePage(pricesOf(section, prices)); err != nil {
			return nil, nil, err
		}
		items = append(items, item)
	}
	drawn.Sections = nil
	var document bytes.Buffer
	if err := drawn.Export(&document); err != nil {
		return nil, nil, err
	}
	page, err = encodePage(json.RawMessage(document.Bytes()))
	return page, items, err
}

func splitSection(section plan.Section) (details, rows json.RawMessage, err error) {
	section.Rows = append([]plan.Row{}, section.Rows...) // a list, where JSON would have null
	for i, row := range section.Rows {
		section.Rows[i].Seats = append([]plan.Seat{}, row.Seats...)
	}
	whole, err := section.MarshalJSON()
	if err != nil {
		return nil, nil, fmt.Errorf("encode section: %w", err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(whole, &members); err != nil {
		return nil, nil, fmt.Errorf("decode section: %w", err)
	}
	if rows, err = encodePage(map[string]json.RawMessage{"rows": members["rows"]}); err != nil {
		return nil, nil, err
	}
	delete(members, "rows")
	details, err = encodePage(members)
	return details, rows, err
}

// pricesOf are the event's first prices of the categories that a section has.
func pricesOf(section plan.Section, list PriceList) draftPrices {
	has := map[string]bool{}
	for _, row := range section.Rows {
		for _, seat := range row.Seats {
			has[seat.Category] = true
		}
	}
	page := draftPrices{Prices: []draftPrice{}}
	for _, p := range list.Prices {
		if p.From == nil && has[p.Category] {
			page.Prices = append(page.Prices, draftPrice{p.Category, p.Type, p.Amount})
		}
	}
	return page
}

// cleanPage is a page as it is kept; an InvalidError, with a pointer into it, if it could not be one. What only the whole draft shows is
// not looked at.
func cleanPage(ctx context.Context, page string, body []byte) (json.RawMessage, error) {
	switch page {
	case PageVariables:
		v, err := readVariables(body)
		if err != nil {
			return nil, err
		}
		return encodePage(v)
	case PagePrices:
		p, err := readDraftPrices(body)
		if err != nil {
			return nil, err
		}
		return encodePage(p)
	case PagePlan:
		return cleanDocument(ctx, body)
	}
	members, err := readObject(body)
	if err != nil {
		return nil, err
	}
	_, hasRows := members["rows"]
	if page == PageSeats {
		if !hasRows || len(members) > 1 {
			return nil, invalid("", "bad_page", "the page has rows, and nothing else")
		}
		members["name"] = json.RawMessage(`"-"`)
	} else if hasRows {
		return nil, invalid("/rows", "bad_page", "the rows of a section are a page of their own")
	}
	section, err := encodePage(map[string]any{"format": plan.Format, "name": "-", "sections": []any{members}})
	if err != nil {
		return nil, err
	}
	drawn, err := importPage(ctx, section, func(at string) string { return strings.TrimPrefix(at, "/sections/0") })
	if err != nil {
		return nil, err
	}
	details, rows, err := splitSection(drawn.Sections[0])
	if page == PageSeats {
		return rows, err
	}
	return details, err
}

func cleanDocument(ctx context.Context, body []byte) (json.RawMessage, error) {
	members, err := readObject(body)
	if err != nil {
		return nil, err
	}
	if string(members["format"]) != strconv.Quote(plan.Format) {
		return nil, invalid("/format", "bad_format", "the page is a document of the format %s", plan.Format)
	}
	drawn, err := importPage(ctx, body, func(at string) string { return at })
	if err != nil {
		return nil, err
	}
	if len(drawn.Sections) > 0 {
		return nil, invalid("/sections", "bad_page", "sections are items of their own")
	}
	page, _, err := splitPlan(drawn, PriceList{})
	return page, err
}

// importPage reads a document that is a page alone.
func importPage(ctx context.Context, document []byte, pointer func(string) string) (plan.Plan, error) {
	drawn, report, err := plan.Import(ctx, bytes.NewReader(document), plan.Options{})
	if err != nil {
		return plan.Plan{}, err
	}
	return drawn, firstDefect(report, elsewhere, pointer)
}

// firstDefect is the first error of a report as an InvalidError, nil if it has none but those of the codes. The report's own words quote
// what was sent, which an answer does not.
func firstDefect(report plan.Report, except []plan.Code, pointer func(string) string) error {
	for _, d := range report.Defects {
		if d.Severity == plan.Error && !slices.Contains(except, d.Code) {
			return invalid(pointer(d.At), string(d.Code), "the plan breaks the rule that the code names")
		}
	}
	return nil
}

func readObject(body []byte) (members map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return nil, invalid("", "bad_page", "a page is one JSON object")
	}
	return members, nil
}

// readStrict decodes a page that has no members but the known ones.
func readStrict(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if typed, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return invalid("/"+strings.ReplaceAll(typed.Field, ".", "/"), "wrong_type", "a value is of a wrong type")
		}
		return invalid("", "bad_page", "the page is not one JSON object with the members that it should have")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return invalid("", "bad_page", "something follows the page")
	}
	return nil
}

func readVariables(body []byte) (v draftVariables, err error) {
	if err := readStrict(body, &v); err != nil {
		return v, err
	}
	for _, given := range []struct {
		name  string
		there bool
	}{
		{"name", v.Name != nil},
		{"sale_starts_at", v.SaleStartsAt != nil},
		{"sale_ends_at", v.SaleEndsAt != nil},
		{"order_limit", v.OrderLimit != nil},
		{"orphan_rule", v.OrphanRule != nil},
	} {
		if !given.there {
			return v, invalid("/"+given.name, "missing", "the page needs all of its members")
		}
	}
	if *v.Name, err = cleanTitle(*v.Name); err != nil {
		return v, at(err, "/name")
	}
	if err := checkTimes(nil, v.SaleStartsAt, v.SaleEndsAt); err != nil {
		return v, err
	}
	if !v.SaleStartsAt.Before(*v.SaleEndsAt) {
		return v, errWindow
	}
	_, err = orderLimit(v.OrderLimit)
	return v, err
}

func readDraftPrices(body []byte) (page draftPrices, err error) {
	if err := readStrict(body, &page); err != nil {
		return page, err
	}
	if page.Prices == nil || len(page.Prices) > maxPrices {
		return page, invalid("/prices", "bad_count", "a list of at most %d prices is needed", maxPrices)
	}
	seen := map[draftPrice]bool{}
	for i, p := range page.Prices {
		at := "/prices/" + strconv.Itoa(i)
		switch {
		case p.Category == "" || !Plain(p.Category):
			return page, invalid(at+"/category", "unknown_category", "the name of a category is needed")
		case p.Type == "" || len(p.Type) > maxType || !Plain(p.Type):
			return page, invalid(at+"/type", "unknown_type", "the name of a ticket type is needed")
		case p.Amount < 0 || p.Amount > maxAmount:
			return page, invalid(at+"/amount", "bad_price", "a price is between 0 and %d minor units", maxAmount)
		}
		p.Amount = 0
		if seen[p] {
			return page, invalid(at, "duplicate_price", "a price of the same category and type stands earlier")
		}
		seen[p] = true
	}
	return page, nil
}

// at puts a pointer before that of an InvalidError.
func at(err error, pointer string) error {
	if fault, ok := errors.AsType[*InvalidError](err); ok {
		return &InvalidError{Pointer: pointer + fault.Pointer, Code: fault.Code, Detail: fault.Detail}
	}
	return err
}

// drawing puts a draft together: its plan with what is wrong with it. Pointers are into the draft.
func (d Draft) drawing(ctx context.Context) (plan.Plan, plan.Report, error) {
	document, err := readObject(d.Document)
	if err != nil {
		return plan.Plan{}, plan.Report{}, err
	}
	sections := make([]map[string]json.RawMessage, len(d.Items))
	for i, item := range d.Items {
		if sections[i], err = readObject(item.Details); err != nil {
			return plan.Plan{}, plan.Report{}, err
		}
		rows, err := readObject(item.Seats)
		if err != nil {
			return plan.Plan{}, plan.Report{}, err
		}
		sections[i]["rows"] = rows["rows"]
	}
	if document["sections"], err = encodePage(sections); err != nil {
		return plan.Plan{}, plan.Report{}, err
	}
	whole, err := encodePage(document)
	if err != nil {
		return plan.Plan{}, plan.Report{}, err
	}
	drawn, report, err := plan.Import(ctx, bytes.NewReader(whole), plan.Options{})
	if err != nil {
		return drawn, report, err
	}
	return drawn, report, firstDefect(report, nil, draftPointer)
}

// draftPointer says where in a draft stands what has the pointer in its plan's document.
func draftPointer(at string) string {
	rest, ok := strings.CutPrefix(at, "/sections/")
	if !ok {
		return "/plan" + at
	}
	i, in, _ := strings.Cut(rest, "/")
	if strings.HasPrefix(in, "rows") {
		return "/items/" + i + "/seats/" + in
	}
	return strings.TrimSuffix("/items/"+i+"/details/"+in, "/")
}

// prices are what the pages that were saved say of the categories of the plan. Two of them may not say different things of one.
func (d Draft) prices(categories, types []string) (list []draftPrice, err error) {
	said := map[draftPrice]int64{}
	for i, item := range d.Items {
		if !item.priced {
			continue
		}
		page, err := readDraftPrices(item.Prices)
		if err != nil {
			return nil, at(err, fmt.Sprintf("/items/%d/prices", i))
		}
		for j, p := range page.Prices {
			key := draftPrice{Category: p.Category, Type: p.Type}
			amount, known := said[key]
			switch {
			case known && amount != p.Amount:
				return nil, invalid(fmt.Sprintf("/items/%d/prices/prices/%d", i, j), "other_price", "an earlier section has another price for this category and type")
			case !slices.Contains(categories, p.Category):
				return nil, invalid(fmt.Sprintf("/items/%d/prices/prices/%d/category", i, j), "unknown_category", "the plan has no category of this name")
			case !slices.Contains(types, p.Type):
				return nil, invalid(fmt.Sprintf("/items/%d/prices/prices/%d/type", i, j), "unknown_type", "the event has no ticket type of this name")
			case !known:
				said[key] = p.Amount
				list = append(list, p)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b draftPrice) int { return cmp.Compare(a.Category, b.Category) })
	return list, nil
}
