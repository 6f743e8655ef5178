// Command plugs is a service with two plugs and locks of its own, which share one node:
//
//	mortisegocron    a job that one instance runs at each tick
//	mortiseserver    one request at a time for each order
//	node.Do          a lock of the service itself, in both
//
// A process needs one node, however many plugs it has: each gets its locks from the node that it is
// given. Their keys begin with a prefix of their own, so they do not meet. The service ends in the
// reverse order: first the server and the scheduler, and then the node, which waits for held locks.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortisegocron"
	"github.com/mortise-lock/mortise/adapters/mortiseserver/httplock"
	"github.com/mortise-lock/mortise/tick"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	listener, err := net.Listen("tcp", ":8080")
	if err == nil {
		err = serve(ctx, listener)
	}
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// stock is what the job and the requests change. It stands for a database.
var stock atomic.Int64

// serve runs the service until ctx ends.
func serve(ctx context.Context, listener net.Listener) (err error) {
	node, err := mortise.Start(ctx, mortise.Config{}) // a group of one; a service has three
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	over := context.WithoutCancel(ctx)
	defer func() { err = errors.Join(err, node.Leave(over)) }() // last, when nothing uses it any more

	scheduler, err := gocron.NewScheduler(gocron.WithLocation(time.UTC))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, scheduler.Shutdown()) }()
	locker := mortisegocron.NewLocker(node, tick.Every(time.Second), mortisegocron.Options{}) // keys "gocron/..."
	_, err = scheduler.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(func() error { return fill(ctx, node) }),
		gocron.WithName("fill"), gocron.WithDistributedJobLocker(locker))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	scheduler.Start()

	locks := httplock.Middleware{Node: node, Request: func(r *http.Request) (mortise.Request, bool) {
		return mortise.Request{Key: "orders/" + r.PathValue("id"), MaxWaiting: 100}, true
	}}
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}", locks.Wrap(order(node)))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	shut := make(chan error, 1)
	context.AfterFunc(ctx, func() { shut <- server.Shutdown(over) })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-shut
}

// fill runs once at each tick, in one instance.
func fill(ctx context.Context, node *mortise.Node) error {
	return node.Do(ctx, "stock", func(context.Context, mortise.Token) error {
		stock.Store(10)
		return nil
	})
}

// order handles one request at a time for each order, among all instances. The orders share the
// stock, so its lock is taken under that of the order.
func order(node *mortise.Node) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := node.Do(r.Context(), "stock", func(context.Context, mortise.Token) error {
			if stock.Load() == 0 {
				return errors.New("sold out")
			}
			stock.Add(-1)
			return nil
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		_, _ = fmt.Fprintln(w, "ordered")
	}
}
