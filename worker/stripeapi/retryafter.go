package stripeapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter only keeps the arithmetic within its bounds: the store caps the
// wait far lower.
const maxRetryAfter = 365 * 24 * time.Hour

// retryAfter reads a Retry-After header (RFC 9110 §10.2.3): seconds, or a date,
// which counts from now. What is neither, and what has passed, is 0.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value != "" && strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
