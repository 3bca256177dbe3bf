package stripefake

import "slices"

// Shrink looks for a smaller life that still fails: it takes away steps, then
// orders and what they say, then events, for as long as failing says so.
// Whatever it tries is a legal life again. failing must be deterministic.
func Shrink(l Life, failing func(Life) bool) Life {
	for {
		smaller := shrinkOnce(l, failing)
		if smaller.size() >= l.size() {
			return l
		}
		l = smaller
	}
}

// size is what Shrink makes less.
func (l Life) size() int {
	n := 100*len(l.Steps) + 10*len(l.Events)
	for _, o := range l.Orders {
		n += 20 + 5*len(o.Refs) + len(o.PaymentIntent)
	}
	for _, s := range l.Steps {
		n += int(min(s.Wait, 2)) + int(s.Gap) + int(s.Lag)
	}
	return n
}

func shrinkOnce(l Life, failing func(Life) bool) Life {
	try := func(candidate Life) bool {
		candidate = candidate.Replay()
		if candidate.size() >= l.size() || !failing(candidate) {
			return false
		}
		l = candidate
		return true
	}
	// Halves first, then quarters, down to single steps.
	for n := len(l.Steps) / 2; n > 0; n /= 2 {
		for i := 0; i+n <= len(l.Steps); {
			c := l
			c.Steps = slices.Delete(slices.Clone(l.Steps), i, i+n)
			if !try(c) {
				i += n
			}
		}
	}
	for i := 0; i < len(l.Orders); {
		c := l
		c.Orders = slices.Delete(slices.Clone(l.Orders), i, i+1)
		if !try(c) {
			i++
		}
	}
	for i := range l.Orders {
		for _, change := range []func(*Order){
			func(o *Order) { o.Refs = nil },
			func(o *Order) { o.PaymentIntent = "" },
		} {
			c := l
			c.Orders = slices.Clone(l.Orders)
			change(&c.Orders[i])
			try(c)
		}
	}
	for i := range l.Steps {
		for _, change := range []func(*Step){
			func(s *Step) { s.Gap, s.Lag = 0, 0 },
			func(s *Step) { s.Wait = min(s.Wait, 1) },
		} {
			if i >= len(l.Steps) {
				break
			}
			c := l
			c.Steps = slices.Clone(l.Steps)
			change(&c.Steps[i])
			try(c)
		}
	}
	for i := 0; i < len(l.Events); {
		c := l
		c.Lost = append(slices.Clone(l.Lost), l.Events[i].ID)
		if !try(c) {
			i++
		}
	}
	return l
}
