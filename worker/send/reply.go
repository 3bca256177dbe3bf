package send

import (
	"errors"
	"net/textproto"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// reply is what a mail server answered: a code, and the enhanced code (RFC
// 3463) if there is one. Its text is not kept, since it often quotes the
// recipient.
type reply struct {
	code     int
	enhanced string
}

var enhancedCode = regexp.MustCompile(`^[245]\.\d{1,3}\.\d{1,3}\b`)

// replyOf finds the reply in an error of the SMTP client. Without one there was
// no answer.
func replyOf(err error) (reply, bool) {
	var said *textproto.Error
	if !errors.As(err, &said) {
		return reply{}, false
	}
	return reply{code: said.Code, enhanced: enhancedCode.FindString(said.Msg)}, true
}

func (r reply) String() string {
	return strings.TrimSpace(strconv.Itoa(r.code) + " " + r.enhanced)
}

// ofSession reports whether the reply is about who may use the server (RFC 4954
// §6) and so says nothing about the mail in hand.
func (r reply) ofSession() bool {
	switch r.code {
	case 530, 534, 535, 538:
		return true
	}
	return false
}

// queued is the text of the reply to a mail that was taken: for most servers
// it holds the id under which the mail can be found in their log. Mail
// addresses are left out.
func queued(text string, addresses []string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' })
	kept := words[:0]
	for _, word := range words {
		if !holdsAddress(word, addresses) {
			kept = append(kept, word)
		}
	}
	return cutText(strings.Join(kept, " "))
}

func holdsAddress(word string, addresses []string) bool {
	for _, a := range addresses {
		if strings.Contains(strings.ToLower(word), strings.ToLower(a)) {
			return true
		}
	}
	return false
}
