package queues

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

type reportArgs struct{ Customer string }

func (reportArgs) Kind() string { return "report" }

type reportWorker struct {
	river.WorkerDefaults[reportArgs]
	node   *mortise.Node
	report func(ctx context.Context, customer string, token mortise.Token) error
}

// Work makes one report of a customer at a time, among all instances. While another one is made,
// the job is snoozed, which is no attempt and occupies no worker.
func (w *reportWorker) Work(ctx context.Context, job *river.Job[reportArgs]) (err error) {
	lock, err := w.node.TryLock(ctx, "reports/"+job.Args.Customer)
	if errors.Is(err, mortise.ErrHeld) {
		return river.JobSnooze(5 * time.Second)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	return w.report(lock.Context(ctx), job.Args.Customer, lock.Token())
}

func TestRiverOneJobPerCustomer(t *testing.T) {
	cluster := mortisetest.New(t, 2)
	workers := river.NewWorkers()
	job := &river.Job[reportArgs]{JobRow: &rivertype.JobRow{}, Args: reportArgs{"anna"}}
	nothing := func(context.Context, string, mortise.Token) error { return nil }
	other := &reportWorker{node: cluster.Node(1), report: nothing}
	river.AddWorker(workers, other)
	first := &reportWorker{node: cluster.Node(0), report: func(ctx context.Context, _ string, token mortise.Token) error {
		var snooze *rivertype.JobSnoozeError
		if err := other.Work(t.Context(), job); !errors.As(err, &snooze) || snooze.Duration != 5*time.Second {
			t.Errorf("a second job: %v", err)
		}
		ben := &river.Job[reportArgs]{JobRow: &rivertype.JobRow{}, Args: reportArgs{"ben"}}
		if err := other.Work(t.Context(), ben); err != nil || token == 0 || ctx.Err() != nil {
			t.Errorf("a job of another customer: %v", err)
		}
		return nil
	}}
	if err := first.Work(t.Context(), job); err != nil {
		t.Error(err)
	}
	if err := other.Work(t.Context(), job); err != nil {
		t.Error(err)
	}
}
