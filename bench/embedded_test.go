package main

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The goroutines of servers, clients and watches in this process must end with the cluster.
func TestEmbeddedPeersLeaveNothing(t *testing.T) {
	for name, module := range map[string]string{"nats": "nats-io", "olric": "olric-data"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			p, _ := peerNamed(name)
			cluster, err := p.Open(ctx, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			exclude(t, ctx, cluster)
			giveUp(t, ctx, cluster)
			if err := cluster.Close(); err != nil {
				t.Fatal(err)
			}
			awaitNone(t, ctx, module)
		})
	}
}

func awaitNone(t *testing.T, ctx context.Context, module string) {
	for {
		left := goroutineOf(module)
		if left == "" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after Close there is still\n%s", left)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// goroutineOf returns the stack of a goroutine that runs code of the module, or "".
func goroutineOf(module string) string {
	text := make([]byte, 4<<20)
	for stack := range strings.SplitSeq(string(text[:runtime.Stack(text, true)]), "\n\n") {
		if strings.Contains(stack, module) {
			return stack
		}
	}
	return ""
}
