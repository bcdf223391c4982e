package booking

import (
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Bounds of what a buyer tells of themselves.
const (
	MaxNameRunes  = 200
	MaxEmailBytes = 254
)

// CleanBuyer returns the name in NFC and the e-mail address, both without outer white space, as a booking stores them. An InvalidError
// points at "/buyer/name" or "/buyer/email"; the name is looked at first.
func CleanBuyer(name, email string) (string, string, error) {
	name, err := CleanName(name)
	if err != nil {
		return "", "", err
	}
	email, err = CleanEmail(email)
	return name, email, err
}

// Plain reports whether a text has only characters that stay where they stand. Control characters would break the head of a mail, and
// those that turn the direction of text would lie on a page; the marks of single characters are plain, because right-to-left names
// need them.
func Plain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) || '\u202a' <= r && r <= '\u202e' || '\u2066' <= r && r <= '\u2069'
	})
}

// CleanName is CleanBuyer for the name alone.
func CleanName(name string) (string, error) {
	const at = "/buyer/name"
	if !utf8.ValidString(name) {
		return "", invalid(at, "bad_name", "a name is text")
	}
	name = norm.NFC.String(strings.TrimSpace(name))
	switch {
	case utf8.RuneCountInString(name) > MaxNameRunes:
		return "", invalid(at, "name_too_long", "a name has at most %d characters", MaxNameRunes)
	case !Plain(name):
		return "", invalid(at, "bad_name", "a name has no control or direction characters")
	case !strings.ContainsFunc(name, func(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.S) }):
		return "", invalid(at, "name_missing", "a name is needed")
	}
	return name, nil
}

// CleanEmail is CleanBuyer for the address alone. It takes one plain ASCII address: others need mail servers that are rare.
func CleanEmail(email string) (string, error) {
	const at = "/buyer/email"
	email = strings.TrimSpace(email)
	if email == "" {
		return "", invalid(at, "email_missing", "an e-mail address is needed")
	}
	if len(email) > MaxEmailBytes {
		return "", invalid(at, "email_too_long", "an e-mail address has at most %d characters", MaxEmailBytes)
	}
	parsed, err := mail.ParseAddress(email)
	if err != nil || parsed.Address != email || strings.ContainsFunc(email, func(r rune) bool { return r > unicode.MaxASCII || r == '[' }) {
		return "", invalid(at, "bad_email", "one e-mail address such as name@example.com is needed")
	}
	return email, nil
}
