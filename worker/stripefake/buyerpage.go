package stripefake

import (
	"bytes"
	"html/template"
	"net/http"
	"strings"
)

// payPath is where a session's page is: payPath + id.
const payPath = "/pay/"

// Pay is a buyer who pays in a session with a card.
func (s *Server) Pay(session string) (Session, error) {
	return s.visit(func(a *Account) (Session, error) { return a.PaySession(session, Card) })
}

// PayByDebit is a buyer who pays in a session by bank debit. [Server.Settle] or
// [Server.Bounce] is what comes of it.
func (s *Server) PayByDebit(session string) (Session, error) {
	return s.visit(func(a *Account) (Session, error) { return a.PaySession(session, Debit) })
}

// Decline is a buyer whose card is declined. The session stays open.
func (s *Server) Decline(session string) (Session, error) {
	return s.visit(func(a *Account) (Session, error) { return a.DeclineSession(session, "generic_decline") })
}

// Settle is the bank that pays a session's debit.
func (s *Server) Settle(session string) (Session, error) {
	return s.visit(func(a *Account) (Session, error) { return a.bankSays(session, true) })
}

// Bounce is the bank that refuses a session's debit.
func (s *Server) Bounce(session string) (Session, error) {
	return s.visit(func(a *Account) (Session, error) { return a.bankSays(session, false) })
}

func (a *Account) bankSays(session string, yes bool) (Session, error) {
	sess, err := find(a.sessions, session)
	if err != nil {
		return Session{}, err
	}
	pi := a.intents[sess.Intent]
	switch {
	case pi == nil || pi.Status != IntentProcessing:
		return Session{}, refuse("payment_intent_unexpected_state", "the bank has nothing to decide about in %s", session)
	case yes:
		err = a.Succeed(pi.ID)
	default:
		err = a.Fail(pi.ID, "insufficient_funds")
	}
	return *sess, err
}

func (s *Server) visit(f func(a *Account) (Session, error)) (session Session, err error) {
	err = s.Do(func(a *Account) error {
		session, err = f(a)
		return err
	})
	return session, err
}

// buyerPage is what a buyer sees of a session.
var buyerPage = template.Must(template.New("pay").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Pay {{.Amount}}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:26rem;margin:3rem auto;padding:0 1rem}button{font:inherit;padding:.5rem 1rem;margin:.25rem 0;width:100%}li{margin:.25rem 0}.note{color:#a00}</style>
<h1>{{.Amount}}</h1>
<p>A stand-in for Stripe's Checkout page: no money moves.</p>
<ul>{{range .Lines}}<li>{{.Number}} × {{.Name}}</li>{{end}}</ul>
{{with .Note}}<p class="note" role="status">{{.}}</p>{{end}}
{{if .Open}}<form method="post">
<button name="method" value="card">Pay by card</button>
{{if .Debit}}<button name="method" value="debit">Pay by bank debit</button>{{end}}
<button name="method" value="decline">Pay with a card that is declined</button>
</form>{{else}}<p>This session is {{.Status}}.</p>{{end}}
{{with .Back}}<p><a href="{{.}}">Back to the shop</a></p>{{end}}
</html>
`))

// serveBuyer is the page of a session: GET shows it, POST with the field method
// (card, debit or decline) acts as its buyer. After a payment it redirects to
// the session's success_url. It asks for no key: buyers have none.
func (s *Server) serveBuyer(w http.ResponseWriter, r *http.Request, id string) {
	note, status := "", http.StatusOK
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost:
		var session Session
		var err error
		switch r.PostFormValue("method") {
		case "", "card":
			session, err = s.Pay(id)
		case "debit":
			session, err = s.PayByDebit(id)
		case "decline":
			session, err = s.Decline(id)
			note = "The card was declined."
		default:
			http.Error(w, "method is card, debit or decline", http.StatusBadRequest)
			return
		}
		switch {
		case err != nil:
			note, status = err.Error(), http.StatusConflict
		case session.Status == SessionComplete && session.SuccessURL != "":
			http.Redirect(w, r, strings.ReplaceAll(session.SuccessURL, "{CHECKOUT_SESSION_ID}", id), http.StatusSeeOther)
			return
		}
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	s.showBuyer(w, id, note, status)
}

func (s *Server) showBuyer(w http.ResponseWriter, id, note string, status int) {
	var session Session
	known := false
	_ = s.Do(func(a *Account) error {
		session, known = a.FindSession(id)
		return nil
	})
	if !known {
		http.Error(w, "there is no such session", http.StatusNotFound)
		return
	}
	var page bytes.Buffer
	err := buyerPage.Execute(&page, map[string]any{
		"Amount": majorUnits(session.Pricing.Total(), session.Currency), "Lines": session.Lines, "Note": note, "Status": session.Status,
		"Open": session.Status == SessionOpen, "Debit": session.method == Debit || len(session.methods) > 1, "Back": session.CancelURL,
	})
	if err != nil {
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = page.WriteTo(w)
}
