package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"paidonce/handler"
	"paidonce/store"
)

// stripePatience is how long a command waits for serve to do at Stripe what was
// asked for. The request is on disk by then, and outlives whoever waits.
const stripePatience = 30 * time.Second

// awaited is what a command knows of an effect when it has waited for it.
type awaited struct {
	store.EffectDetail
	served bool // a serve was there to carry it out
}

// done reports whether what was asked for has happened.
func (w awaited) done() bool { return w.Status == "done" }

// await waits until serve has carried out an effect. The error is a
// [handler.Refusal] if it came to nothing. Without a serve, and after
// stripePatience, it returns the effect as it stands: that is no failure.
func (a *app) await(ctx context.Context, s *store.Store, id string) (awaited, error) {
	w := awaited{served: s.Serving()}
	var err error
	// Whoever interrupts the wait is still told what was queued.
	if w.EffectDetail, err = s.FindEffect(context.WithoutCancel(ctx), id); err == nil && w.served && !w.Settled() {
		ctx, cancel := context.WithTimeout(ctx, stripePatience)
		defer cancel()
		stop := a.progress("waiting for serve to carry out effect " + id)
		w.EffectDetail, err = s.AwaitEffect(ctx, id)
		stop()
	}
	if err != nil {
		return w, err
	}
	if p := handler.Refusal(w.EffectDetail); p != nil {
		return w, p
	}
	return w, nil
}

// open tells how an effect stands that has no answer yet.
func (w awaited) open() string {
	said := "queued as effect " + w.ID + ": "
	switch {
	case w.Settled():
		said += "it is " + w.Status + " and waits for a person"
	case !w.served:
		said += "serve is not running, and carries it out when it starts"
	case w.LastError != "":
		said += "serve has no answer yet (" + w.LastError + "), and goes on"
	default:
		said += "serve has no answer yet, and goes on"
	}
	return clean(fmt.Sprintf("%s; `paidonce effects show %s` tells what comes of it", said, w.ID))
}

// unanswered is the error of a command whose whole point was the answer.
func (w awaited) unanswered(what string) error { return errors.New(what + ": " + w.open()) }

// progress tells what is waited for on stderr, until stop is called: a line that
// counts the seconds on a terminal, a plain line elsewhere.
func (a *app) progress(text string) (stop func()) {
	if a.json {
		return func() {}
	}
	if f, ok := a.stderr.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		a.hint("%s, for up to %d s", text, int(stripePatience.Seconds()))
		return func() {}
	}
	return countSeconds(a.stderr, text)
}

// countSeconds writes a line to a terminal and counts the seconds in it. stop
// takes it away.
func countSeconds(w io.Writer, text string) (stop func()) {
	asked, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for n := 0; ; n++ {
			fmt.Fprintf(w, "\r%s … %d s", text, n)
			select {
			case <-asked:
				fmt.Fprint(w, "\r\x1b[K")
				return
			case <-ticker.C:
			}
		}
	}()
	return func() {
		close(asked)
		<-ended
	}
}
