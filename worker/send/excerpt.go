package send

import (
	"fmt"
	"sync"

	"paidonce/store"
)

// An excerpt keeps the beginning and the end of what is written to it: the
// first says what was tried, the last what went wrong.
const (
	excerptHead = 384
	excerptTail = 576
)

// excerpt takes any amount and keeps at most store.MaxAnswerBody bytes of it.
// Its zero value is empty. It may be read while it is written to.
type excerpt struct {
	mu   sync.Mutex
	head []byte
	tail []byte // what came after head, at its end the newest
	size int64  // of everything written
}

// Write never fails.
func (x *excerpt) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.size += int64(len(p))
	n := min(excerptHead-len(x.head), len(p))
	x.head = append(x.head, p[:n]...)
	x.tail = append(x.tail, p[n:]...)
	if room := store.MaxAnswerBody - excerptHead; len(x.tail) > room {
		keep := room
		if x.size > store.MaxAnswerBody {
			keep = excerptTail
		}
		x.tail = append(x.tail[:0], x.tail[len(x.tail)-keep:]...)
	}
	return len(p), nil
}

// Bytes returns the excerpt, with a line that says how much is left out.
func (x *excerpt) Bytes() []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	tail, gap := x.tail, ""
	if x.size > store.MaxAnswerBody {
		tail = tail[max(len(tail)-excerptTail, 0):]
		gap = fmt.Sprintf("\n… %d bytes left out …\n", x.size-int64(len(x.head)+len(tail)))
	}
	return append(append(append([]byte(nil), x.head...), gap...), tail...)
}
