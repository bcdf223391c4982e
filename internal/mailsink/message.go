package mailsink

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"strings"
	"time"
)

const maxDepth = 5 // of parts inside parts

// Message is one mail as it was handed over.
type Message struct {
	ID        int64     `json:"id"`   // grows by one
	From      string    `json:"from"` // of the envelope, as are To
	To        []string  `json:"to"`
	Subject   string    `json:"subject"`
	MessageID string    `json:"message_id"` // without angle brackets
	Date      time.Time `json:"date"`       // of arrival, UTC
	Text      string    `json:"text"`       // the first plain part
	HTML      string    `json:"html"`       // the first HTML part

	Header mail.Header `json:"-"`
	Raw    []byte      `json:"-"`
}

// parse never fails: a message that cannot be read has only its envelope and
// Raw, which is what whoever looks for the defect wants to see.
func parse(from string, to []string, raw []byte) Message {
	m := Message{From: from, To: to, Date: time.Now().UTC(), Raw: raw}
	msg, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return m
	}
	m.Header = msg.Header
	for _, values := range m.Header {
		for i, v := range values {
			if plain, err := new(mime.WordDecoder).DecodeHeader(v); err == nil {
				values[i] = plain
			}
		}
	}
	m.Subject = m.Header.Get("Subject")
	m.MessageID = strings.Trim(m.Header.Get("Message-Id"), "<> ")
	m.addPart(textproto.MIMEHeader(msg.Header), msg.Body, 0)
	return m
}

func (m *Message) addPart(h textproto.MIMEHeader, body io.Reader, depth int) {
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		kind = "text/plain"
	}
	if strings.HasPrefix(kind, "multipart/") {
		parts := multipart.NewReader(body, params["boundary"])
		for depth < maxDepth {
			part, err := parts.NextRawPart()
			if err != nil {
				return
			}
			m.addPart(part.Header, part, depth+1)
		}
		return
	}
	if disposition, _, _ := mime.ParseMediaType(h.Get("Content-Disposition")); disposition == "attachment" {
		return
	}
	switch strings.ToLower(h.Get("Content-Transfer-Encoding")) {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	text, _ := io.ReadAll(body)
	content := strings.ToValidUTF8(string(text), "\uFFFD")
	switch {
	case kind == "text/plain" && m.Text == "":
		m.Text = content
	case kind == "text/html" && m.HTML == "":
		m.HTML = content
	}
}
