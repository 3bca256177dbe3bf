package stripefake

import (
	"fmt"
	"slices"
	"strconv"
)

// DeliveryRecord is one attempt of a delivery, or one that was dropped.
type DeliveryRecord struct {
	Number   int // of the delivery
	Event    string
	Type     string
	Endpoint string
	Copy     int // 0 is the delivery itself
	Attempt  int // from 1; 0 is dropped
	At       int64
	Status   int    // 0 is no answer
	Err      string // why there is none; at most 200 bytes
	Acked    bool   // 2xx, and the answer arrived
}

func (d *delivery) record(at int64) DeliveryRecord {
	return DeliveryRecord{
		Number: d.Number, Event: d.Event.ID, Type: d.Event.Type, Endpoint: d.Endpoint, Copy: d.copy, Attempt: d.attempts, At: at,
	}
}

// DeliveryLog is every attempt so far, in the order in which they ended.
func (s *Server) DeliveryLog() []DeliveryRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.post.log)
}

func (r DeliveryRecord) String() string {
	result := strconv.Itoa(r.Status)
	switch {
	case r.Attempt == 0:
		result = "dropped"
	case r.Err != "":
		result = r.Err
	}
	return fmt.Sprintf("%s %s to %s, copy %d, attempt %d: %s", r.Type, r.Event, r.Endpoint, r.Copy, r.Attempt, result)
}
