package webui

import (
	"bytes"
	"crypto/rand"
	"embed"
	"fmt"
	"html/template"
	"time"

	"github.com/labstack/echo/v4"

	"seatfence/booking"
	"seatfence/internal/money"
	"seatfence/seats"
)

var (
	//go:embed templates/*.html
	templateFiles embed.FS
	//go:embed page.css
	style []byte

	// The address of the style changes with its content, so that browsers may keep it for ever.
	stylePath = "/assets/page-" + hashOf(style) + ".css"

	templates = template.Must(template.New("").Funcs(template.FuncMap{
		"style":    func() string { return stylePath },
		"script":   scriptPath,
		"key":      rand.Text, // another one in every form that is rendered
		"price":    money.Format,
		"iso":      func(t time.Time) string { return t.Format(time.RFC3339) },
		"exact":    func(t time.Time) string { return t.Format(time.RFC3339Nano) },
		"when":     when,
		"clock":    clock,
		"left":     left,
		"masked":   masked,
		"position": position,
		"describe": described,
		"signs":    signsOf,
		"offset":   offset,
		"held":     func(list []booking.HeldSeat) crowd { return crowdOf(placesOf(list, placeOfHeld), "") },
		"booked":   func(list []seats.Ticket) crowd { return crowdOf(placesOf(list, placeOfTicket), "") },
		"tickets":  func(currency string, list []ticket) ticketList { return ticketList{currency, list} },
		"named":    func(name string) bool { return name != booking.StandardType },
	}).ParseFS(templateFiles, "templates/*.html"))
)

func serveStyle(c echo.Context) error {
	h := c.Response().Header()
	h.Set("Cache-Control", kept)
	return writeStatic(c, "text/css; charset=utf-8", stylePath, style)
}

// layout is what every template gets. Open are holds to lead back to.
type layout struct {
	Title string
	Open  []booking.Hold
	Page  any
}

// render writes a page with the reminder of the buyer's open holds.
func (u *UI) render(v *visit, status int, name, title string, page any) error {
	return u.write(v, status, name, layout{title, u.openHolds(v), page})
}

const (
	// policy lets a page load its own style and scripts, ask its own server and send its own forms, and nothing else.
	policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	// referrerPolicy is not no-referrer: with that, browsers send "Origin: null" with the page's own forms, and over plain HTTP nothing
	// would tell those from another site's.
	referrerPolicy = "same-origin"
)

func (u *UI) write(v *visit, status int, name string, l layout) error {
	var html bytes.Buffer
	if err := templates.ExecuteTemplate(&html, name, l); err != nil {
		return fmt.Errorf("make page %s: %w", name, err)
	}
	h := v.Response().Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", referrerPolicy)
	return v.HTMLBlob(status, html.Bytes())
}
