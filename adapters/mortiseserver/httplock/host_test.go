package httplock

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A request that has waited for MaxWait, and one whose client has gone, get no lock later. The
// reason of each is one sentence with one cause, and names the key.
func TestARequestThatHasGivenUp(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, s *service) {
		lock, err := s.cluster.Node(1).Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		s.middleware[0].MaxWait = time.Second
		expect(t, "MaxWait", s.send(t.Context(), 0, http.MethodPut, "/a"), http.StatusLocked)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		expect(t, "client", s.send(short, 2, http.MethodPut, "/a"), http.StatusServiceUnavailable)
		for i, cause := range []string{"the lock was not free in time", "context deadline exceeded"} {
			text := s.failed[i].Error()
			if strings.Count(text, cause) != 1 || strings.Count(text, `"a"`) != 1 || strings.Contains(text, "canceled") {
				t.Errorf("the reason is %s", text)
			}
		}
		if err := lock.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if info, err := s.cluster.Node(0).Peek(t.Context(), "a"); err != nil || info.Held > 0 || len(s.tokens) > 0 {
			t.Errorf("a minute later %d hold the lock, %d were handled: %v", info.Held, len(s.tokens), err)
		}
	})
}

// After a lost lock the client repeats its request, and it is handled.
func TestARequestIsRepeatedAfterALoss(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, s *service) {
		s.handle = func(_ http.ResponseWriter, r *http.Request) {
			s.handle = nil
			s.cluster.Lose(0)
			<-r.Context().Done()
		}
		expect(t, "lost", s.send(t.Context(), 0, http.MethodPut, "/a"), http.StatusServiceUnavailable)
		s.cluster.Ready(0)
		expect(t, "repeated", s.send(t.Context(), 0, http.MethodPut, "/a"), http.StatusOK)
	})
}
