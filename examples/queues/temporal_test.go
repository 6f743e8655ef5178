package queues

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

type activities struct {
	node   *mortise.Node
	charge func(ctx context.Context, order string, token mortise.Token) error
}

// Charge is an activity that runs under the lock of its order. While the lock is held, it fails and
// is retried after 5 s, which occupies no worker. A workflow itself must not lock: it is replayed.
func (a *activities) Charge(ctx context.Context, order string) (err error) {
	lock, err := a.node.TryLock(ctx, "orders/"+order)
	if errors.Is(err, mortise.ErrHeld) {
		return temporal.NewApplicationErrorWithOptions("the order is locked", "Locked",
			temporal.ApplicationErrorOptions{NextRetryDelay: 5 * time.Second, Cause: err})
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	return a.charge(lock.Context(ctx), order, lock.Token())
}

func TestTemporalActivityUnderALock(t *testing.T) {
	cluster := mortisetest.New(t, 1)
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	environment := suite.NewTestActivityEnvironment()
	var token mortise.Token
	a := &activities{node: cluster.Node(0), charge: func(_ context.Context, _ string, t mortise.Token) error {
		token = t
		return nil
	}}
	environment.RegisterActivity(a)
	held, err := cluster.Node(0).Lock(t.Context(), "orders/42")
	if err != nil {
		t.Fatal(err)
	}
	_, err = environment.ExecuteActivity(a.Charge, "42")
	var locked *temporal.ApplicationError
	if !errors.As(err, &locked) || locked.Type() != "Locked" || locked.NonRetryable() ||
		locked.NextRetryDelay() != 5*time.Second {
		t.Errorf("while it is locked: %v", err)
	}
	if err := held.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := environment.ExecuteActivity(a.Charge, "42"); err != nil || token <= held.Token() {
		t.Errorf("%v, tokens %d and %d", err, held.Token(), token)
	}
}
