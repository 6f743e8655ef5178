package queues

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/election"
	"github.com/mortise-lock/mortise/mortisetest"
)

// lockedByOrder is a middleware. Messages of one order are handled one at a time, among all
// instances, in the order in which their handlers have asked for the lock.
func lockedByOrder(node *mortise.Node) message.HandlerMiddleware {
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) (out []*message.Message, err error) {
			err = node.Do(msg.Context(), "orders/"+msg.Metadata.Get("order"), func(ctx context.Context, _ mortise.Token) error {
				msg.SetContext(ctx) // ends if the lock is lost
				out, err = next(msg)
				return err
			})
			return out, err
		}
	}
}

// consume runs on every instance. One of them consumes, until it stops or dies. A router cannot run
// twice, so each leadership makes its own.
func consume(ctx context.Context, node *mortise.Node, newRouter func() (*message.Router, error)) error {
	e := election.New(node, "watermill/orders", election.Options{})
	return e.Run(ctx, "", func(ctx context.Context, l *election.Leadership) error {
		router, err := newRouter()
		if err != nil {
			return err
		}
		return errors.Join(router.Run(ctx), l.Err()) // Run ends when ctx ends
	})
}

// fleet has a router for each node, which share channels.
type fleet struct {
	t         *testing.T
	channels  *gochannel.GoChannel
	now, most atomic.Int64
	handled   chan int
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{t: t, channels: gochannel.NewGoChannel(gochannel.Config{}, watermill.NopLogger{}),
		handled: make(chan int, 100)}
	t.Cleanup(func() { _ = f.channels.Close() })
	return f
}

func (f *fleet) router(i int, middleware ...message.HandlerMiddleware) (*message.Router, error) {
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		return nil, err
	}
	router.AddMiddleware(middleware...)
	router.AddNoPublisherHandler("charge", "orders", f.channels, func(*message.Message) error {
		f.most.Store(max(f.most.Load(), f.now.Add(1)))
		defer f.now.Add(-1)
		time.Sleep(50 * time.Millisecond)
		f.handled <- i
		return nil
	})
	return router, nil
}

func (f *fleet) publish(order string) {
	msg := message.NewMessage(watermill.NewUUID(), nil)
	msg.Metadata.Set("order", order)
	if err := f.channels.Publish("orders", msg); err != nil {
		f.t.Error(err)
	}
}

// Both instances get each message, as with two topics of one broker.
func TestWatermillOneMessagePerOrder(t *testing.T) {
	cluster, f := mortisetest.New(t, 2), newFleet(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	for i := range 2 {
		router, err := f.router(i, lockedByOrder(cluster.Node(i)))
		if err != nil {
			t.Fatal(err)
		}
		go func() { ended <- router.Run(ctx) }()
		<-router.Running()
	}
	for range 3 {
		f.publish("42")
	}
	for range 6 {
		<-f.handled
	}
	if f.most.Load() != 1 {
		t.Errorf("%d messages of one order at a time", f.most.Load())
	}
	cancel()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// Another instance consumes when the first one is lost, and only then.
func TestWatermillOneConsumer(t *testing.T) {
	cluster, f := mortisetest.New(t, 3), newFleet(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended, running := make(chan error), make(chan int, 10)
	for i := range 3 {
		go func() {
			ended <- consume(ctx, cluster.Node(i), func() (*message.Router, error) {
				router, err := f.router(i)
				if err == nil {
					go func() { <-router.Running(); running <- i }()
				}
				return router, err
			})
		}()
	}
	first := <-running
	cluster.Await("watermill/orders", 1, 2)
	f.publish("42")
	if by := <-f.handled; by != first {
		t.Errorf("handled by %d, and %d leads", by, first)
	}
	cluster.Lose(first)
	second := <-running
	f.publish("43")
	if by := <-f.handled; by != second || by == first {
		t.Errorf("handled by %d after the loss of %d, and %d leads", by, first, second)
	}
	cancel()
	for range 3 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if len(f.handled) != 0 {
		t.Error("a message was handled twice")
	}
}
