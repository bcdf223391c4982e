package main

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"seatfence/internal/app"
	"seatfence/internal/config"
	"seatfence/internal/staff"
	"seatfence/seats"
)

type userCommand struct {
	Create createUser `cmd:"" help:"Make a user, and the organizer if there is none of that name, and have them mailed an invitation."`
	List   listUsers  `cmd:"" help:"List all users."`
	Remove removeUser `cmd:"" help:"Remove a user. Servers that have just seen them accept them for some seconds more."`
}

type createUser struct {
	Organizer string   `required:"" help:"Name of the organizer whom the user acts for."`
	Email     string   `required:"" help:"The user's e-mail address, where the invitation goes."`
	Name      string   `required:"" help:"The user's name."`
	Role      string   `required:"" enum:"owner,editor,box_office,door" help:"owner: everything; editor: events and prices; box_office: sells; door: reads."`
	Event     []string `placeholder:"EVT" help:"An event that the user is for; may be given several times. Without it the user is for every event."`
	PrintLink bool     `help:"Print the link of the invitation instead of mailing it. It begins with PUBLIC_URL."`
}

// Run prints the link alone, so that a script can take it.
func (c createUser) Run(s *session) error {
	n := staff.NewUser{Email: c.Email, Name: c.Name, Role: c.Role, EveryEvent: len(c.Event) == 0}
	for _, text := range c.Event {
		id, err := seats.ParseEventID(text)
		if err != nil {
			return fmt.Errorf("event %q: %w", text, err)
		}
		n.Events = append(n.Events, id)
	}
	return withStaff(s, func(people *staff.Staff) error {
		organizer, err := people.Organizer(s.ctx, c.Organizer)
		if err != nil {
			return err
		}
		user, link, err := people.Create(s.ctx, organizer, n, c.PrintLink)
		switch {
		case err != nil:
			return err
		case user.Active:
			fmt.Fprintf(s.stdout, "%s is a user already: %s\n", user.Email, staff.FormatID(user.ID))
		case c.PrintLink:
			fmt.Fprintln(s.stderr, "This link is shown once. It works once, for 7 days.")
			fmt.Fprintln(s.stdout, link)
		default:
			fmt.Fprintf(s.stdout, "User %s: the invitation is on its way to %s as soon as a server runs.\n", staff.FormatID(user.ID), user.Email)
		}
		return nil
	})
}

type listUsers struct{}

// Run prints a table.
func (listUsers) Run(s *session) error {
	return withStaff(s, func(people *staff.Staff) error {
		list, err := people.Everybody(s.ctx)
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ID\tORGANIZER\tROLE\tEVENTS\tNAME\tE-MAIL\tCREATED\tPASSWORD")
		for _, u := range list {
			events, password := "all", "none yet"
			if !u.EveryEvent {
				ids := make([]string, len(u.Events))
				for i, id := range u.Events {
					ids[i] = id.String()
				}
				events = strings.Join(ids, ",")
			}
			if u.Active {
				password = "set"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
				staff.FormatID(u.ID), u.OrganizerName, u.Role, events, u.Name, u.Email, u.CreatedAt.Format(time.RFC3339), password)
		}
		return table.Flush()
	})
}

type removeUser struct {
	ID string `arg:"" help:"The user's id, as in the list."`
}

// Run removes the user.
func (c removeUser) Run(s *session) error {
	id, err := staff.ParseID(c.ID)
	if err != nil {
		return fmt.Errorf("user %q: %w", c.ID, err)
	}
	return withStaff(s, func(people *staff.Staff) error { return people.RemoveAny(s.ctx, id) })
}

func withStaff(s *session, fn func(*staff.Staff) error) error {
	cfg, err := config.LoadDatabase(s.environ)
	if err != nil {
		return err
	}
	public, err := url.Parse(cmp.Or(s.environ["PUBLIC_URL"], "http://127.0.0.1:8080"))
	if err != nil || public.Host == "" {
		return fmt.Errorf("PUBLIC_URL: an address such as https://tickets.example.com is needed")
	}
	return app.WithStaff(s.ctx, cfg, public, fn)
}
