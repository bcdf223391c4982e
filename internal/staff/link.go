package staff

import (
	"context"
	"crypto/sha256"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"seatfence/booking"
	"seatfence/db"
)

// What a link is for.
const (
	Invitation = "invitation"
	Reset      = "reset"
)

const (
	linkPrefix     = "sfl_"
	invitationLife = 7 * 24 * time.Hour
	mailAttempts   = 60 // nine hours, by the waits of all mails
	// mailRest is how long a second mail for the same purpose is left out: a form that anybody may send must not fill a mailbox.
	mailRest = 5 * time.Minute

	// ResetLife is how long a link for a new password is good, and how long it is worth mailing.
	ResetLife = time.Hour
)

// MailArgs is the job that mails a user a link. The link itself is made by the job's worker: it must not rest in the queue.
type MailArgs struct {
	User    uuid.UUID `json:"user"`
	Purpose string    `json:"purpose"` // Invitation or Reset
}

// Kind names the job in the queue.
func (MailArgs) Kind() string { return "staff_mail" }

// InsertOpts leaves out a job of the same arguments for a while.
func (MailArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: mailAttempts, UniqueOpts: river.UniqueOpts{ByArgs: true, ByPeriod: mailRest}}
}

// mail queues a link in the transaction of what it is for. One who has a password is not invited.
func (s *Staff) mail(ctx context.Context, tx pgx.Tx, u User, purpose string) error {
	if purpose == Invitation && u.Active {
		return nil
	}
	_, err := s.jobs.InsertTx(ctx, tx, MailArgs{u.ID, purpose}, nil)
	return err
}

// Letter is what a user is mailed. Link is a secret until ExpiresAt.
type Letter struct {
	User      User
	Purpose   string
	Link      string
	ExpiresAt time.Time
}

// Letter makes a new link for a user, which drops the one before. It is booking.ErrNotFound for a user who was removed, or who is to be
// invited and has a password.
func (s *Staff) Letter(ctx context.Context, user uuid.UUID, purpose string) (letter Letter, err error) {
	err = db.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		p, err := queries.PersonGet(ctx, tx, user)
		if err != nil {
			return err
		}
		if purpose == Invitation && p.PasswordHash != nil {
			return booking.ErrNotFound
		}
		letter, err = s.letter(ctx, tx, userOf(p), purpose)
		return err
	})
	return letter, answer("make link", err)
}

func (s *Staff) letter(ctx context.Context, tx pgx.Tx, u User, purpose string) (Letter, error) {
	life := ResetLife
	if purpose == Invitation {
		life = invitationLife
	}
	token, hash := newSecret(linkPrefix)
	expires, err := queries.TokenPut(ctx, tx, db.TokenPutParams{Hash: hash[:], UserID: u.ID, Purpose: purpose, Lifetime: life})
	link := s.public.JoinPath("staff", "password")
	link.RawQuery = url.Values{"token": {token}}.Encode()
	return Letter{User: u, Purpose: purpose, Link: link.String(), ExpiresAt: expires.UTC()}, err
}

// Forgot mails a link for a new password to an address, if it is a user's. Nobody is told whether it is.
func (s *Staff) Forgot(ctx context.Context, email string) error {
	email, err := booking.CleanEmail(email)
	if err != nil {
		return at("/email", err)
	}
	p, err := queries.PersonByEmail(ctx, s.pool, email)
	if db.NotFound(err) {
		return nil
	}
	if err == nil {
		err = db.InTx(ctx, s.pool, func(tx pgx.Tx) error { return s.mail(ctx, tx, userOf(p), Reset) })
	}
	return answer("queue link", err)
}

// Linked returns the user that a link is for, and leaves it as good as it is. ErrBadToken if it is over.
func (s *Staff) Linked(ctx context.Context, token string) (User, error) {
	if !isSecret(linkPrefix, token) {
		return User{}, ErrBadToken
	}
	hash := sha256.Sum256([]byte(token))
	row, err := queries.TokenGet(ctx, s.pool, hash[:])
	if err == nil {
		var p db.Person
		if p, err = queries.PersonGet(ctx, s.pool, row.UserID); err == nil {
			return userOf(p), nil
		}
	}
	if db.NotFound(err) {
		return User{}, ErrBadToken
	}
	return User{}, answer("look up link", err)
}

// SetPassword takes a link for a new password, ends the user's sessions and other links, and starts a session.
func (s *Staff) SetPassword(ctx context.Context, token, password string) (secret string, session Session, err error) {
	if _, err = s.Linked(ctx, token); err != nil { // before a guess costs a hash
		return "", session, err
	}
	if password, err = checkPassword(password); err != nil {
		return "", session, err
	}
	made, err := s.hash(ctx, password)
	if err != nil {
		return "", session, err
	}
	hash := sha256.Sum256([]byte(token))
	err = db.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		row, err := queries.TokenTake(ctx, tx, hash[:])
		if db.NotFound(err) {
			return ErrBadToken
		}
		if err != nil {
			return err
		}
		n, err := queries.UserSetPassword(ctx, tx, db.UserSetPasswordParams{ID: row.UserID, PasswordHash: &made})
		if err != nil {
			return err
		}
		if n == 0 {
			return ErrBadToken
		}
		if err := queries.TokensEnd(ctx, tx, row.UserID); err != nil {
			return err
		}
		if err := queries.SessionsEnd(ctx, tx, row.UserID); err != nil {
			return err
		}
		p, err := queries.PersonGet(ctx, tx, row.UserID)
		if err != nil {
			return err
		}
		if secret, session, err = begin(ctx, tx, userOf(p)); err != nil {
			return err
		}
		return record(ctx, tx, p.OrganizerID, userActor(p.ID), "user.password_set", p.ID, map[string]string{"by": row.Purpose})
	})
	if err != nil {
		return "", Session{}, answer("set password", err)
	}
	s.forget(session.User.ID)
	return secret, session, nil
}
