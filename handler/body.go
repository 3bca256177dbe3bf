package handler

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

const (
	// firstChunk is what a body may take before it has proved to be longer.
	firstChunk = 64 << 10
	// minGate is the memory for all bodies in flight.
	minGate = 64 << 20
)

// gate bounds the bytes of all bodies in flight. A body takes from it as its
// bytes arrive and not as its Content-Length claims, so that memory is held by
// those who send and not by those who announce. The last eighth is kept for
// bodies up to firstChunk, which real events are: a few who send large ones
// slowly cannot keep the others out.
type gate struct {
	mu   sync.Mutex
	size int64
	used int64
}

// newGate makes room for at least one body of the largest size, which takes
// half as much again while it grows.
func newGate(largest int64) *gate {
	return &gate{size: max(minGate, 2*largest)}
}

func (g *gate) take(n int64, first bool) bool {
	most := g.size
	if !first {
		most -= g.size / 8
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.used+n > most {
		return false
	}
	g.used += n
	return true
}

func (g *gate) give(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used -= n
}

// heldBody is a body in memory, until it is released.
type heldBody struct {
	gate  *gate
	held  int64
	bytes []byte
}

func (b *heldBody) release() {
	b.gate.give(b.held)
	b.held = 0
}

// grow makes room for size bytes in all.
func (b *heldBody) grow(size int64) error {
	if !b.gate.take(size, b.held == 0) {
		return unavailable("too many requests are in flight; try again", "no memory left for bodies", nil)
	}
	bigger := make([]byte, len(b.bytes), size)
	copy(bigger, b.bytes)
	b.gate.give(b.held)
	b.bytes, b.held = bigger, size
	return nil
}

// readBody reads the whole body of r, if it is at most most bytes. One that
// says that it is larger is refused before any of it is read; so is one that
// turns out to be, before more than that is in memory. After any error nothing
// is held.
func (g *gate) readBody(w http.ResponseWriter, r *http.Request, most int64) (_ *heldBody, err error) {
	length := r.ContentLength // -1 is unknown
	if length > most {
		return nil, tooLarge(most)
	}
	b := &heldBody{gate: g, bytes: []byte{}} // an empty body is one too, and not nil
	defer func() {
		if err != nil {
			b.release()
		}
	}()
	// A length that was announced is trusted for eight times what has arrived:
	// a few steps, and little is held twice while the bytes move.
	last, factor := length, int64(8)
	if length < 0 {
		last, factor = most+1, 2 // the end shows only when one more byte is asked for
	}
	from := http.MaxBytesReader(w, r.Body, most)
	for int64(len(b.bytes)) != length {
		if len(b.bytes) == cap(b.bytes) {
			size := max(firstChunk, factor*b.held)
			if size >= most {
				size = last
			}
			if err := b.grow(min(size, last)); err != nil {
				return nil, err
			}
		}
		n, err := from.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		var over *http.MaxBytesError
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) && (length < 0 || int64(len(b.bytes)) == length):
			return b, nil
		case errors.As(err, &over):
			return nil, tooLarge(most)
		default:
			return nil, &failure{status: http.StatusBadRequest, code: "malformed",
				message: "the request body could not be read to its end", reason: "body cut short", cause: err}
		}
	}
	return b, nil
}
