package stripefake

import (
	"math/rand/v2"
	"sync"
)

// DeliveryRequest is one delivery: an event for an endpoint.
type DeliveryRequest struct {
	Event    Event
	Endpoint string
	Number   int // among all deliveries, from 1
}

// DeliveryFault is what is wrong with a delivery. The zero DeliveryFault is
// nothing.
type DeliveryFault struct {
	Drop   bool // never sent: pending for good, delivery_success=false
	Copies int  // sent this many times more, each with retries of its own
	// Late keeps it back until this many attempts of other deliveries have been
	// made, or until Drain has nothing else to wait for.
	Late int
	// Hold keeps it back until ReleaseHeld, and Drain does not wait for it.
	Hold bool
	// LoseAnswer: the first attempt's answer gets lost. The receiver has the
	// event, and will get it again.
	LoseAnswer bool
}

// DeliveryChances are the chances of faults, between 0 and 1, each by itself.
type DeliveryChances struct {
	Drop, Double, Late, LoseAnswer float64
	LateBy                         int // at most this many attempts late; 0 is 8
}

// RandomDeliveryFaults gives each delivery faults by chance. One seed gives one
// sequence.
func RandomDeliveryFaults(seed uint64, c DeliveryChances) func(DeliveryRequest) DeliveryFault {
	if c.LateBy == 0 {
		c.LateBy = 8
	}
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 0xde11))
	return func(DeliveryRequest) DeliveryFault {
		mu.Lock()
		defer mu.Unlock()
		f := DeliveryFault{Drop: rng.Float64() < c.Drop, LoseAnswer: rng.Float64() < c.LoseAnswer}
		if rng.Float64() < c.Double {
			f.Copies = 1
		}
		if late := 1 + rng.IntN(c.LateBy); rng.Float64() < c.Late {
			f.Late = late
		}
		return f
	}
}
