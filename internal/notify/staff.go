package notify

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	htmltemplate "html/template"
	netmail "net/mail"
	"net/url"
	texttemplate "text/template"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/wneessen/go-mail"

	"seatfence/booking"
	"seatfence/internal/staff"
)

var (
	//go:embed staff.txt.tmpl
	staffTextSource string
	//go:embed staff.html.tmpl
	staffHTMLSource string

	staffText = texttemplate.Must(texttemplate.New("text").Parse(staffTextSource))
	staffHTML = htmltemplate.Must(htmltemplate.New("html").Parse(staffHTMLSource))
)

// staffWorker mails users links. Each attempt makes a link of its own, because none is kept, and so drops the one before: the newest
// mail is the one that works.
type staffWorker struct {
	river.WorkerDefaults[staff.MailArgs]
	people *staff.Staff
	server *url.URL
	from   netmail.Address
}

// NextRetry waits as that of other mails does.
func (w *staffWorker) NextRetry(job *river.Job[staff.MailArgs]) time.Time {
	return time.Now().Add(retryAfter(len(job.Errors)))
}

// Work mails one link. A new password that was asked for long ago is not mailed any more: its user has asked again, or it was not them.
func (w *staffWorker) Work(ctx context.Context, job *river.Job[staff.MailArgs]) error {
	if job.Args.Purpose == staff.Reset && time.Since(job.CreatedAt) > staff.ResetLife {
		return river.JobCancel(errors.New("nobody waits for this link any more"))
	}
	letter, err := w.people.Letter(ctx, job.Args.User, job.Args.Purpose)
	if errors.Is(err, booking.ErrNotFound) {
		return river.JobCancel(err)
	}
	if err != nil {
		return err
	}
	msg, err := composeLink(letter, w.from)
	if err != nil {
		return fmt.Errorf("write mail: %w", err)
	}
	if err := send(ctx, w.server, msg); err != nil {
		return failure(err)
	}
	return nil
}

// composeLink writes the mail with a link. Its Message-ID is new each time, so that no mailbox takes the mail with the newest link for
// one that it has.
func composeLink(l staff.Letter, from netmail.Address) (*mail.Msg, error) {
	invited := l.Purpose == staff.Invitation
	msg, err := write(staffText, staffHTML, map[string]any{
		"Invited": invited, "Name": l.User.Name, "Organizer": l.User.OrganizerName, "Link": l.Link,
		"Until": l.ExpiresAt.UTC().Format("Monday, 2 January 2006, 15:04") + " UTC",
	})
	if err != nil {
		return nil, err
	}
	address(msg, from, l.User.Name, l.User.Email, "staff."+uuid.NewString())
	if invited {
		msg.Subject("Your invitation to " + l.User.OrganizerName)
	} else {
		msg.Subject("A new password for Seatfence")
	}
	return msg, nil
}
