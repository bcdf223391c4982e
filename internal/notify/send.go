package notify

import (
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/wneessen/go-mail"
)

const (
	sendTimeout = 15 * time.Second // from dialing to the server's last word
	portPlain   = 25
	portTLS     = 465
)

// send hands one message to the server, over a connection of its own that ends with it. smtps:// speaks TLS from the start, smtp://
// uses it where the server offers it and insists on it when the URL has a password.
func send(ctx context.Context, server *url.URL, msg *mail.Msg) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	host, port := server.Hostname(), portPlain
	dial := new(net.Dialer).DialContext
	if server.Scheme == "smtps" {
		port, dial = portTLS, (&tls.Dialer{Config: &tls.Config{ServerName: host}}).DialContext
	}
	if given, err := strconv.Atoi(server.Port()); err == nil {
		port = given
	}
	options := []mail.Option{
		mail.WithPort(port), mail.WithTimeout(sendTimeout), mail.WithTLSPolicy(mail.TLSOpportunistic),
		// The client keeps deadlines, but does not look at ctx once it is connected.
		mail.WithDialContextFunc(func(dialing context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(dialing, network, address)
			if err == nil {
				context.AfterFunc(ctx, func() { _ = conn.Close() })
			}
			return conn, err
		}),
	}
	if user := server.User; user != nil {
		password, _ := user.Password()
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(user.Username()), mail.WithPassword(password))
		if server.Scheme == "smtp" {
			options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
		}
	}
	client, err := mail.NewClient(host, options...)
	if err != nil {
		return err
	}
	err = client.DialAndSendWithContext(ctx, msg)
	if msg.IsDelivered() {
		return nil // whatever went wrong after the server took it: sending it again would only double it
	}
	return err
}
