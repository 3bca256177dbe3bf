package stripeapi

import "testing"

func TestNoProxyOfTheEnvironmentIsUsed(t *testing.T) {
	if newTransport().Proxy != nil {
		t.Error("the transport asks the environment for a proxy")
	}
}
