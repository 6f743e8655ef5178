package main

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/limits"
)

func TestWordsOfTheAgentAtTheirBounds(t *testing.T) {
	limits.AtMost(t, "maxName", maxName, func(n int) bool { return checkName(strings.Repeat("n", n)) == nil })
	limits.AtMost(t, "maxRequestID", maxRequestID, func(n int) bool {
		_, err := withRequest(httptest.NewRequest("POST", "/v1/lock", nil), asked{Request: strings.Repeat("r", n)})
		return err == nil
	})
}

func TestRequestsToTheAgentAtTheirBounds(t *testing.T) {
	limits.AtMost(t, "maxBody", maxBody, func(n int) bool {
		r := httptest.NewRequest("POST", "/v1/lock", strings.NewReader("{}"+strings.Repeat(" ", n-2)))
		r.Header.Set("Content-Type", "application/json")
		_, err := read(httptest.NewRecorder(), r)
		return err == nil
	})
	ttl := func(ms int64) bool {
		d, err := ttlOf(asked{TTL: new(float64(ms) / 1000)})
		return err == nil && d.Round(time.Millisecond).Milliseconds() == ms
	}
	limits.AtLeast(t, "leaseTTLMin, in milliseconds", leaseTTLMin.Milliseconds(), ttl)
	limits.AtMost(t, "maxLeaseTTL, in milliseconds", maxLeaseTTL.Milliseconds(), ttl)
	limits.AtMost(t, "maxKeys", maxKeys, func(n int) bool {
		some := func(yield func(mortise.KeyInfo, error) bool) {
			for range n {
				if !yield(mortise.KeyInfo{}, nil) {
					return
				}
			}
		}
		list, more, err := firstKeys(some)
		return err == nil && len(list) == n && !more
	})
}

func TestFlagsAtTheirBounds(t *testing.T) {
	limits.AtMost(t, "maxPings", maxPings, func(n int) bool {
		return !strings.Contains(ping(t.Context(), &call{}, pingOptions{n}).Error(), "-n must be")
	})
	limits.AtMost(t, "maxDev", maxDev, func(n int) bool {
		return devOptions{n: n | 1, listen: "127.0.0.1:0"}.check(&call{}) == nil // only odd numbers are allowed
	})
	limits.AtLeast(t, "tokenLeast", tokenLeast, func(n int) bool {
		all, err := new(call).readTokens("", strings.Repeat("t", n))
		return err == nil && len(all) == 1
	})
}
