// A receiver for the http effects of paidonce. It acts once on each webhook-id.
package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	secret := os.Getenv("SHOP_HOOK_SECRET") // whsec_…, as in paidonce
	webhook, err := standardwebhooks.NewWebhook(secret)
	if err != nil || len(secret) < len("whsec_")+32 {
		log.Fatal("SHOP_HOOK_SECRET is not a secret")
	}
	http.HandleFunc("POST /paid", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, "unreadable", http.StatusBadRequest)
			return
		}
		if err := webhook.Verify(body, r.Header); err != nil { // also what is older than 5 minutes
			http.Error(w, "not signed", http.StatusUnauthorized)
			return
		}
		if err := once(r.Header.Get("webhook-id"), body); err != nil {
			http.Error(w, "not done", http.StatusInternalServerError) // it comes again
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err := errors.Join(err, os.MkdirAll("seen", 0o700)); err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening on", listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}

// once does the work that an id stands for, if it has not been done. Here the
// directory stands for all of it, made once or not at all. In a shop it is one
// database transaction: insert the id (UNIQUE; if it is there, nothing is left
// to do), and deliver what the body says was bought.
func once(id string, _ []byte) error {
	err := os.Mkdir(fmt.Sprintf("seen/%x", sha256.Sum256([]byte(id))), 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
