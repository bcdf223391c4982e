package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"seatfence/internal/access"
	"seatfence/internal/app"
	"seatfence/internal/config"
)

type migrateCommand struct{}

// Run migrates. Several may run at once.
func (migrateCommand) Run(s *session) error {
	cfg, err := config.LoadDatabase(s.environ)
	if err != nil {
		return err
	}
	return app.Migrate(s.ctx, cfg)
}

type verifyCommand struct{}

// Run prints each invariant, and fails if one is broken.
func (verifyCommand) Run(s *session) error {
	cfg, err := config.LoadDatabase(s.environ)
	if err != nil {
		return err
	}
	sound := true
	err = app.Verify(s.ctx, cfg, func(invariant string, broken int64) {
		if broken == 0 {
			fmt.Fprintf(s.stdout, "ok      %s\n", invariant)
			return
		}
		sound = false
		fmt.Fprintf(s.stdout, "BROKEN  %s: %d rows\n", invariant, broken)
	})
	if err == nil && !sound {
		err = errors.New("the database breaks a promise of the sale")
	}
	return err
}

type apiKeyCommand struct {
	Create createKey `cmd:"" help:"Make a key, and its organizer if there is none of that name, and print the token."`
	List   listKeys  `cmd:"" help:"List all keys."`
	Revoke revokeKey `cmd:"" help:"End a key. Servers that have just seen it accept it for some seconds more."`
}

type createKey struct {
	Organizer string   `required:"" help:"Name of the organizer whose events the key is for."`
	Name      string   `required:"" help:"What the key is for, in words."`
	Scope     string   `default:"partner" enum:"organizer,partner" help:"organizer: everything in the organizer's events; partner: sells for the organizer."`
	Origin    []string `sep:"none" help:"Whose pages may show the organizer's seat maps with the key's id: https://shop.example. Once for each, up to 10."`
}

// Run prints the token alone, so that a script can take it.
func (c createKey) Run(s *session) error {
	return withKeys(s, func(keys *access.Keys) error {
		token, _, err := keys.Create(s.ctx, c.Organizer, c.Name, c.Scope, c.Origin...)
		if err != nil {
			return err
		}
		fmt.Fprintln(s.stderr, "This token is shown once. Its key's id is the part between the underscores.")
		fmt.Fprintln(s.stdout, token)
		return nil
	})
}

type listKeys struct{}

// Run prints a table.
func (listKeys) Run(s *session) error {
	return withKeys(s, func(keys *access.Keys) error {
		list, err := keys.List(s.ctx)
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ID\tSCOPE\tORGANIZER\tNAME\tCREATED\tREVOKED\tORIGINS")
		for _, k := range list {
			revoked := "-"
			if k.Revoked != nil {
				revoked = k.Revoked.Format(time.RFC3339)
			}
			origins := "-"
			if len(k.Origins) > 0 {
				origins = strings.Join(k.Origins, " ")
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Scope, k.Organizer, k.Name, k.Created.Format(time.RFC3339), revoked, origins)
		}
		return table.Flush()
	})
}

type revokeKey struct {
	ID string `arg:"" help:"The key's id: 22 characters, as in the list."`
}

// Run ends the key.
func (c revokeKey) Run(s *session) error {
	return withKeys(s, func(keys *access.Keys) error { return keys.Revoke(s.ctx, c.ID) })
}

func withKeys(s *session, fn func(*access.Keys) error) error {
	cfg, err := config.LoadDatabase(s.environ)
	if err != nil {
		return err
	}
	return app.WithKeys(s.ctx, cfg, fn)
}
