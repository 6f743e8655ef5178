package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mortise-lock/mortise"
)

// ledger represents the database of a batch: the next invoice, and the highest token with which it
// was written.
type ledger struct {
	mu    sync.Mutex
	next  int
	token mortise.Token
}

func (l *ledger) from() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// book records an invoice and the progress in one transaction. It fails if a later holder of the
// lock has already recorded an invoice.
func (l *ledger) book(invoice int, token mortise.Token) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if token < l.token || invoice != l.next {
		return errors.New("another instance continues this batch")
	}
	l.next, l.token = invoice+1, token
	return nil
}

// Batch work runs under one lock, with a deployment in the middle. The lease is renewed
// automatically. The context ends if the lock is lost or the instance begins to leave; the next
// holder continues from the stored progress.
func Example_billingThroughADeployment() {
	ctx := context.Background()
	nodes, stop := startFleet(ctx, "billing-0", "billing-1", "billing-2")
	defer stop()

	books := ledger{next: 1}
	run := func(node *mortise.Node, each func(ctx context.Context, invoice int)) error {
		return node.Do(ctx, "batches/invoices", func(ctx context.Context, token mortise.Token) error {
			fmt.Println("begins at invoice", books.from())
			for invoice := books.from(); invoice <= 100; invoice++ {
				each(ctx, invoice) // the work on one invoice; should end soon after ctx
				if ctx.Err() != nil {
					return context.Cause(ctx) // not booked: the next holder processes it
				}
				if err := books.book(invoice, token); err != nil {
					return err
				}
			}
			return nil
		})
	}

	left := make(chan error, 1)
	err := run(nodes[0], func(ctx context.Context, invoice int) {
		if invoice == 41 { // the deployment ends this instance, whose main calls Leave
			go func() { left <- nodes[0].Leave(context.Background()) }()
			<-ctx.Done()
		}
	})
	fmt.Println("first instance:", err, errors.Is(err, mortise.ErrLeaving))
	fmt.Println("it has left:", <-left)
	err = run(nodes[1], func(context.Context, int) {})
	fmt.Println("second instance:", err)
	fmt.Println("all booked:", books.from() == 101)
	// Output:
	// begins at invoice 1
	// first instance: mortise: the node is leaving true
	// it has left: <nil>
	// begins at invoice 41
	// second instance: <nil>
	// all booked: true
}
