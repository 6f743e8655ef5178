package mortisecollector

import (
	"context"
	"fmt"
	"testing"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/trio"
)

func TestMain(m *testing.M) { trio.Main(m, collect) }

// collect runs in a process of its own, as a collector with two receivers.
func collect(ctx context.Context, node *mortise.Node) error {
	h := newHost(nil, NewFactoryFor(node), nil)
	if err := h.elector().Start(ctx, nil); err != nil {
		return err
	}
	for _, kind := range []string{"objects", "events"} {
		h.all[h.id].(leaderElection).SetCallBackFuncs(
			func(ctx context.Context) {
				token, is := mortise.TokenFrom(ctx)
				fmt.Println("starts", kind, is && token > 0)
			},
			func() { fmt.Println("stops", kind) })
	}
	return h.elector().Ready()
}

// The collector of three whose receivers run is killed. They run in another one when its session
// has expired.
func TestAProcessIsKilled(t *testing.T) {
	f := trio.Start(t)
	first := f.Await(1, "starts objects true")[0]
	if got := f.Await(1, "starts events true"); got[0] != first {
		t.Errorf("one receiver runs in %d, the other in %d", first, got[0])
	}
	f.Kill(first)
	for _, kind := range []string{"objects", "events"} {
		if got := f.Await(2, "starts "+kind+" true"); got[1] == first {
			t.Errorf("process %d is dead", first)
		}
	}
}
