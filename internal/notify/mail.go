package notify

import (
	"bytes"
	_ "embed"
	"fmt"
	htmltemplate "html/template"
	netmail "net/mail"
	"strings"
	texttemplate "text/template"
	"time"

	"github.com/wneessen/go-mail"

	"seatfence/booking"
	"seatfence/internal/money"
)

var (
	//go:embed mail.txt.tmpl
	textSource string
	//go:embed mail.html.tmpl
	htmlSource string

	textPart = texttemplate.Must(texttemplate.New("text").Parse(textSource))
	htmlPart = htmltemplate.Must(htmltemplate.New("html").Parse(htmlSource))
)

// letter is what the templates fill in.
type letter struct {
	Cancelled bool
	Name      string
	Number    string
	Event     string
	Venue     string
	Starts    string // in the event's zone, with the zone
	Seats     []line
	Total     string
}

type line struct{ Label, Price, Code string }

// compose writes the mail of one kind about a booking. Its Message-ID is the same however often it is sent, so that a mailbox that gets
// it twice shows it once.
func compose(b booking.Booking, event booking.Event, kind string, from netmail.Address) (*mail.Msg, error) {
	starts, err := localTime(event.StartsAt, event.Timezone)
	if err != nil {
		return nil, err
	}
	l := letter{
		Cancelled: kind == booking.MailCancelled, Name: b.Name, Number: b.Number, Event: event.Name, Venue: event.Venue, Starts: starts,
		Total: money.Format(b.Total, b.Currency),
	}
	for _, t := range b.Seats {
		l.Seats = append(l.Seats, line{t.Label(), money.Format(t.Price, b.Currency), t.Code})
	}
	msg, err := write(textPart, htmlPart, l)
	if err != nil {
		return nil, err
	}
	address(msg, from, b.Name, b.Email, fmt.Sprintf("%s.%s", b.ID, kind))
	msg.Subject(l.subject())
	return msg, nil
}

// address heads a message: id is what its Message-ID begins with.
func address(msg *mail.Msg, from netmail.Address, name, email, id string) {
	_, host, _ := strings.Cut(from.Address, "@")
	msg.FromMailAddress(&from)
	msg.ToMailAddress(&netmail.Address{Name: name, Address: email}) // encoded by net/mail: a name cannot become another header
	msg.SetMessageIDWithValue(id + "@" + host)
	msg.SetDate()
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
}

// write makes a message of its two parts.
func write(text *texttemplate.Template, html *htmltemplate.Template, data any) (*mail.Msg, error) {
	var plain, marked bytes.Buffer
	if err := text.Execute(&plain, data); err != nil {
		return nil, err
	}
	if err := html.Execute(&marked, data); err != nil {
		return nil, err
	}
	msg := mail.NewMsg(mail.WithNoDefaultUserAgent())
	msg.SetBodyString(mail.TypeTextPlain, plain.String())
	msg.AddAlternativeString(mail.TypeTextHTML, marked.String())
	return msg, nil
}

func (l letter) subject() string {
	if l.Cancelled {
		return fmt.Sprintf("Cancelled: booking %s, %s", l.Number, l.Event)
	}
	return fmt.Sprintf("Your tickets: %s, booking %s", l.Event, l.Number)
}

// localTime writes a time as the clocks at the venue show it: "Thursday, 28 January 2027, 19:30 (Europe/Berlin, UTC+01:00)".
func localTime(t time.Time, zone string) (string, error) {
	location, err := time.LoadLocation(zone)
	if err != nil {
		return "", fmt.Errorf("event's zone: %w", err)
	}
	local := t.In(location)
	return fmt.Sprintf("%s (%s, UTC%s)", local.Format("Monday, 2 January 2006, 15:04"), zone, local.Format("-07:00")), nil
}
