package handler

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"

	"paidonce/store/payment"
)

func unbase64(t testing.TB, text string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parse(body []byte) payment.Envelope { return payment.ParseEnvelope(body) }

func serveBare(h *Handler, r *http.Request) got {
	rec := httptest.NewRecorder()
	h.Public().ServeHTTP(rec, r)
	return got{rec.Code, rec.Header(), rec.Body.String()}
}

func TestReadBody(t *testing.T) {
	const most = 1 << 20
	for _, tt := range []struct {
		name   string
		size   int
		length int64 // Content-Length; -1 is unknown
		broken bool  // the connection ends with an error
		status int   // of the failure; 0 is none
	}{
		{"empty", 0, 0, false, 0},
		{"empty, in chunks", 0, -1, false, 0},
		{"one byte", 1, 1, false, 0},
		{"a small one", 3000, 3000, false, 0},
		{"a small one, in chunks", 3000, -1, false, 0},
		{"one chunk of memory", firstChunk, firstChunk, false, 0},
		{"one chunk of memory, in chunks", firstChunk, -1, false, 0},
		{"one byte more", firstChunk + 1, firstChunk + 1, false, 0},
		{"the most", most, most, false, 0},
		{"the most, in chunks", most, -1, false, 0},
		{"one byte too many", most + 1, most + 1, false, 413},
		{"one byte too many, in chunks", most + 1, -1, false, 413},
		{"shorter than it said", 10, 11, false, 400},
		{"broken off", 10, 20, true, 400},
		{"broken off, in chunks", firstChunk * 2, -1, true, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGate(most)
			data := bytes.Repeat([]byte("abcdefg"), tt.size/7+1)[:tt.size]
			from := io.Reader(bytes.NewReader(data))
			if tt.broken {
				from = io.MultiReader(from, iotest.ErrReader(io.ErrUnexpectedEOF))
			}
			r := &http.Request{Body: io.NopCloser(iotest.HalfReader(from)), ContentLength: tt.length}
			b, err := g.readBody(httptest.NewRecorder(), r, most)
			if tt.status != 0 {
				var f *failure
				if !errors.As(err, &f) || f.status != tt.status {
					t.Errorf("readBody = %v; want a %d", err, tt.status)
				}
			} else {
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(b.bytes, data) {
					t.Errorf("%d bytes, or others than were sent; want %d", len(b.bytes), len(data))
				}
				if g.used < int64(len(data)) {
					t.Errorf("%d bytes are counted; want at least %d", g.used, len(data))
				}
				b.release()
			}
			if g.used != 0 {
				t.Errorf("%d bytes are still held", g.used)
			}
		})
	}
}

// TestTheGateBoundsAllBodies and keeps room for small ones.
func TestTheGateBoundsAllBodies(t *testing.T) {
	g := newGate(githubMaxBody)
	if g.size != 64<<20 {
		t.Fatalf("the gate is %d bytes", g.size)
	}
	read := func(size int) (*heldBody, error) {
		r := &http.Request{Body: io.NopCloser(io.LimitReader(zeros{}, int64(size))), ContentLength: int64(size)}
		return g.readBody(httptest.NewRecorder(), r, githubMaxBody)
	}
	a, err := read(githubMaxBody)
	if err != nil {
		t.Fatal(err)
	}
	b, err := read(githubMaxBody)
	if err != nil {
		t.Fatalf("a second one of the largest: %v", err)
	}
	var f *failure
	if _, err := read(githubMaxBody); !errors.As(err, &f) || f.status != http.StatusServiceUnavailable {
		t.Errorf("a third large one = %v; want 503", err)
	}
	var small []*heldBody
	for range 100 {
		s, err := read(firstChunk)
		if err != nil {
			t.Fatalf("a small one: %v", err)
		}
		small = append(small, s)
	}
	a.release()
	c, err := read(20 << 20)
	if err != nil {
		t.Fatalf("after a release: %v", err)
	}
	for _, held := range append(small, b, c) {
		held.release()
	}
	if g.used != 0 {
		t.Errorf("%d bytes are still held", g.used)
	}
	huge := newGate(64 << 20)
	r := &http.Request{Body: io.NopCloser(io.LimitReader(zeros{}, 64<<20)), ContentLength: -1}
	if _, err := huge.readBody(httptest.NewRecorder(), r, 64<<20); err != nil {
		t.Errorf("the largest body that may be configured: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestAnAnnouncedBodyHoldsNoMemory until it arrives.
func TestAnAnnouncedBodyHoldsNoMemory(t *testing.T) {
	g := newGate(githubMaxBody)
	in, out := io.Pipe()
	done := make(chan error)
	go func() {
		b, err := g.readBody(httptest.NewRecorder(), &http.Request{Body: in, ContentLength: githubMaxBody}, githubMaxBody)
		if b != nil {
			b.release()
		}
		done <- err
	}()
	if _, err := out.Write(make([]byte, 1000)); err != nil { // returns when it has been read
		t.Fatal(err)
	}
	g.mu.Lock()
	used := g.used
	g.mu.Unlock()
	if used != firstChunk {
		t.Errorf("%d bytes are held for 1000 that came; want %d", used, firstChunk)
	}
	if err := out.CloseWithError(io.ErrUnexpectedEOF); err != nil {
		t.Fatal(err)
	}
	if err := <-done; verdict(err) != "malformed" {
		t.Errorf("readBody = %v; want malformed", err)
	}
}
