package config

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	netmail "net/mail"
	"net/url"
	"slices"
	"strings"
)

// URL is an address that may carry a password. String leaves that out; the whole is URL.URL.
type URL struct{ *url.URL }

// UnmarshalText reads an absolute URL. The error does not quote it.
func (u *URL) UnmarshalText(text []byte) error {
	parsed, err := url.Parse(string(text))
	if err != nil || parsed.Host == "" {
		return errors.New("not a URL with a host")
	}
	u.URL = parsed
	return nil
}

// String is the URL without its password and without its query, where some drivers take one too.
func (u URL) String() string {
	if u.URL == nil {
		return ""
	}
	shown := *u.URL
	shown.RawQuery, shown.Fragment = "", ""
	return shown.Redacted()
}

var errMissing = errors.New("missing")

func (u URL) check(schemes ...string) error {
	switch {
	case u.URL == nil:
		return errMissing
	case !slices.Contains(schemes, u.Scheme):
		return fmt.Errorf("does not begin with %s://", strings.Join(schemes, ":// or "))
	}
	return nil
}

const minKey = 32 // bytes

// Key is a secret.
type Key []byte

// UnmarshalText reads hex or base64, either alphabet, with or without padding.
func (k *Key) UnmarshalText(text []byte) error {
	if raw, err := hex.DecodeString(string(text)); err == nil {
		*k = raw
		return nil
	}
	plain := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(string(text), "="))
	raw, err := base64.RawStdEncoding.DecodeString(plain)
	if err != nil {
		return errors.New("neither hex nor base64")
	}
	*k = raw
	return nil
}

// String does not tell the key.
func (k Key) String() string {
	if len(k) == 0 {
		return ""
	}
	return "redacted"
}

func (k Key) check() error {
	switch {
	case len(k) == 0:
		return errMissing
	case len(k) < minKey:
		return fmt.Errorf("%d bytes are too few, %d are needed", len(k), minKey)
	}
	return nil
}

// Address is who mails come from.
type Address struct{ netmail.Address }

// UnmarshalText reads "name <local@host>" or the address alone.
func (a *Address) UnmarshalText(text []byte) error {
	parsed, err := netmail.ParseAddress(string(text))
	if err != nil {
		return errors.New("not a mail address")
	}
	a.Address = *parsed
	return nil
}

// String is the address as a mail shows it.
func (a Address) String() string { return a.Address.String() }

// Switch is on or off.
type Switch bool

// UnmarshalText reads "on" or "off".
func (s *Switch) UnmarshalText(text []byte) error {
	switch string(text) {
	case "on":
		*s = true
	case "off":
		*s = false
	default:
		return fmt.Errorf("%q is neither on nor off", text)
	}
	return nil
}

// String is "on" or "off".
func (s Switch) String() string {
	if s {
		return "on"
	}
	return "off"
}
