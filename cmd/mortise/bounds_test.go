package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

func TestWordsOfTheAgentAtTheirBounds(t *testing.T) {
	limits.AtMost(t, "maxName", maxName, func(n int) bool { return checkName(strings.Repeat("n", n)) == nil })
	limits.AtMost(t, "maxRequestID", maxRequestID, func(n int) bool {
		_, err := withRequest(httptest.NewRequest("POST", "/v1/lock", nil), asked{Request: strings.Repeat("r", n)})
		return err == nil
	})
}
