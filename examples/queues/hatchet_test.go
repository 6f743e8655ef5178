package queues

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

type accountInput struct{ Account string }

type accountOutput struct{ Changed int }

// hatchetContext stands for hatchet.Context, which is a context.Context with more methods.
type hatchetContext interface{ context.Context }

type accountTask func(ctx context.Context, in accountInput, token mortise.Token) (accountOutput, error)

// underAccount makes a task run under the lock of its account. All tasks that it wraps share the
// lock, of whichever workflow. The result is the function of a standalone task.
func underAccount(node *mortise.Node, task accountTask) func(hatchetContext, accountInput) (accountOutput, error) {
	return func(ctx hatchetContext, in accountInput) (out accountOutput, err error) {
		err = node.Do(ctx, "accounts/"+in.Account, func(ctx context.Context, token mortise.Token) error {
			out, err = task(ctx, in, token)
			return err
		})
		return out, err
	}
}

func TestHatchetTasksShareALock(t *testing.T) {
	cluster := mortisetest.New(t, 2)
	var now, most atomic.Int64
	work := func(_ context.Context, _ accountInput, token mortise.Token) (accountOutput, error) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		time.Sleep(50 * time.Millisecond)
		return accountOutput{Changed: int(min(token, 1))}, nil
	}
	var all sync.WaitGroup
	for i := range 4 {
		task := underAccount(cluster.Node(i%2), work) // two tasks on each instance
		all.Go(func() {
			if out, err := task(t.Context(), accountInput{"123"}); err != nil || out.Changed != 1 {
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
	all.Wait()
	if most.Load() != 1 {
		t.Errorf("%d tasks at a time", most.Load())
	}
}
