package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// priced makes an event of the price in a currency, with a child's price of half of it, and a tier of twice as much that has not begun.
func (a *api) priced(currency string, price int) string {
	a.t.Helper()
	body := strings.NewReplacer(`"currency":"EUR"`, `"currency":"`+currency+`"`, `"price":4500`, fmt.Sprintf(`"price":%d`, price),
		`"areas":`, fmt.Sprintf(`"types":["adult","child"],"prices":[{"category":"A","type":"child","price":%d},
			{"category":"A","price":%d,"from":"2098-01-01T00:00:00Z"}],"areas":`, price/2, 2*price)).Replace(newEvent("on_sale"))
	return a.post("/v1/events", body, as(a.organizer), key(currency)).want(201).text("id")
}

const lenaBuys = `"buyer":{"name":"Lena","email":"lena@example.com"}`

func TestWhatIsPaidIsWhatWasPromisedInEveryCurrency(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for currency, price := range map[string]int{"JPY": 1000, "EUR": 4500, "KWD": 1234} {
		event, lena := a.priced(currency, price), a.buyer()
		hold := a.post("/v1/events/"+event+"/holds", `{"best_available":{"types":[{"type":"adult","quantity":2},{"type":"child","quantity":1}]}}`, as(lena), key("h"+currency)).want(201)
		total := 2*price + price/2
		if hold.number("total") != total || hold.text("currency") != currency || hold.number("seats", 2, "price") != price/2 {
			t.Errorf("%s: hold %s", currency, hold.raw)
		}
		if tag, err := a.pool.Exec(t.Context(), "UPDATE prices SET starts_at = statement_timestamp() WHERE starts_at > statement_timestamp()"); err != nil || tag.RowsAffected() != 1 {
			t.Fatalf("the tier does not begin: %v, %v", tag, err)
		}
		booked := a.post("/v1/bookings", fmt.Sprintf(`{"hold":%q,"expected_total":%d,%s}`, hold.text("id"), total, lenaBuys), as(lena), key("b"+currency)).want(201)
		if booked.number("total") != total || booked.text("currency") != currency {
			t.Errorf("%s: what the hold promised: %s", currency, booked.raw)
		}
		sale := func(total int) string {
			return fmt.Sprintf(`{"event":%q,"seats":[1],"expected_total":%d,%s}`, event, total, lenaBuys)
		}
		a.post("/v1/bookings", sale(price), as(lena), key("old"+currency)).wantCode(409, "price_changed")
		if late := a.post("/v1/bookings", sale(2*price), as(lena), key("new"+currency)).want(201); late.number("total") != 2*price {
			t.Errorf("%s: of the tier that has begun: %s", currency, late.raw)
		}
	}
}

func TestPriceOfAClientIsRefused(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	holds, lena := "/v1/events/"+a.event+"/holds", a.buyer()
	hold := a.post(holds, `{"seats":[9]}`, as(lena), key("hold")).want(201).text("id")
	requests := []struct{ method, path, body string }{
		{http.MethodPost, holds, `{"seats":[{"id":1,PRICE}]}`},
		{http.MethodPost, holds, `{"seats":[1],PRICE}`},
		{http.MethodPost, holds, `{"ga":{"area":1,"quantity":1,PRICE}}`},
		{http.MethodPost, holds, `{"best_available":{"quantity":1,PRICE}}`},
		{http.MethodPost, holds, `{"best_available":{"types":[{"type":"standard","quantity":1,PRICE}]}}`},
		{http.MethodPatch, "/v1/holds/" + hold, `{"add":[{"id":2,PRICE}]}`},
		{http.MethodPost, "/v1/bookings", `{"hold":"` + hold + `",` + lenaBuys + `,PRICE}`},
		{http.MethodPost, "/v1/bookings", `{"event":"` + a.event + `","seats":[{"id":1,PRICE}],` + lenaBuys + `}`},
		{http.MethodPost, "/v1/bookings", `{"event":"` + a.event + `","seats":[1],` + lenaBuys + `,PRICE}`},
		{http.MethodPost, "/v1/bookings", `{"event":"` + a.event + `","ga":{"area":1,"quantity":1,PRICE},` + lenaBuys + `}`},
	}
	for i, r := range requests {
		for _, member := range []string{"price", "amount", "total"} {
			edits := []edit{as(lena)}
			if r.method == http.MethodPost {
				edits = append(edits, key(fmt.Sprint(i, member)))
			}
			a.do(r.method, r.path, strings.Replace(r.body, "PRICE", `"`+member+`":1`, 1), edits...).wantCode(400, "unknown_field")
		}
	}
	if got := a.get("/v1/holds/"+hold, as(lena)).want(200); got.number("total") != 4500 || got.text("status") != "open" {
		t.Errorf("the hold is now %s", got.raw)
	}
}
