package mortise

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/fair"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/replica"
)

// guarded is a buffer that is safe for concurrent use.
type guarded struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (g *guarded) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.b.Write(p)
}

func (g *guarded) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.b.String()
}

// TestAWatchBeyondTheLimitIsToldByName takes all places for watches at the leader. A watch then
// gets its events late and loses none, and one WARN names the limit.
func TestAWatchBeyondTheLimitIsToldByName(t *testing.T) {
	const within = 10 * time.Second // ten times the expected delay
	log := &guarded{}
	n, err := Start(t.Context(), Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if err := n.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	questions := n.engine.Inside().Replica().Questions
	taken := 0
	for ; ; taken++ {
		who := fair.Identity{Instance: nodeidtest.ID(1<<40 + uint64(taken))}
		if _, err := questions.Ask(replica.Question{Op: replica.OpWatch, For: who}); err != nil {
			break
		}
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	events := make(chan Event, 100)
	go func() {
		defer close(events)
		for e, err := range n.Watch(ctx, "k", 0) {
			if err != nil {
				return
			}
			events <- e
		}
	}()
	for range 3 {
		l, err := n.Lock(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		late := time.After(within)
		for held := false; !held; {
			select {
			case e := <-events:
				held = e.Kind == EventHeld && e.Token == l.Token()
			case <-late:
				t.Fatalf("no event within %v; the expected delay is a second", within)
			}
		}
		if err := l.Unlock(ctx); err != nil {
			t.Fatal(err)
		}
	}
	const limit = "watches have reached the limit of all instances: at most 4096"
	if got := strings.Count(log.String(), limit); got != 1 || taken < 4000 {
		t.Errorf("%d watches; %d lines name the limit:\n%s", taken, got, log)
	}
}
