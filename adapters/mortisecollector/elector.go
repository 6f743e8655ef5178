package mortisecollector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.uber.org/zap"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/election"
)

const (
	keyPrefix = "collector/"
	hangs     = 10 * time.Second // how long stop callbacks may take without a warning
)

// Elector is the extension. It has the methods of k8sleaderelector.LeaderElection.
type Elector struct {
	key    string
	log    *zap.Logger
	open   func(ctx context.Context) (*mortise.Node, error)
	leaves bool // the node belongs to this extension

	mu        sync.Mutex // guards the fields below
	node      *mortise.Node
	receivers []receiver
	term      *term  // the leadership of this collector; nil if it does not lead
	end       func() // ends the campaign and waits for it; nil if there is none
}

var _ extension.Extension = (*Elector)(nil)

func newElector(set extension.Settings, key string) *Elector {
	if key == "" {
		key = keyPrefix + set.ID.String()
	}
	return &Elector{key: key, log: set.Logger.With(zap.String("key", key))}
}

// receiver has the callbacks of one receiver.
type receiver struct {
	start func(context.Context)
	stop  func()
}

// term is one leadership of this collector.
type term struct {
	ctx context.Context // of the leadership
	all sync.WaitGroup  // the goroutines of run
}

// run calls the callbacks of a receiver on a goroutine of its own.
func (t *term) run(r receiver) {
	t.all.Go(func() {
		if t.ctx.Err() != nil {
			return
		}
		r.start(t.ctx)
		<-t.ctx.Done()
		r.stop()
	})
}

// SetCallBackFuncs registers a receiver. start is called each time when this collector begins to
// lead, or at once if it leads, and must return without waiting for the work that it starts. Its
// context ends with the leadership. stop is called when the leadership has ended, and must return
// only when this work has ended. Nil callbacks do nothing. A receiver cannot be unregistered.
func (e *Elector) SetCallBackFuncs(start func(context.Context), stop func()) {
	if start == nil {
		start = func(context.Context) {}
	}
	if stop == nil {
		stop = func() {}
	}
	r := receiver{start, stop}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.receivers = append(e.receivers, r)
	if e.term != nil {
		e.term.run(r)
	}
}

// Start starts the node of the extension, if it has its own. It does not wait for a majority.
func (e *Elector) Start(ctx context.Context, _ component.Host) error {
	node, err := e.open(ctx)
	if err != nil {
		return fmt.Errorf("mortisecollector: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.node = node
	return nil
}

// Ready begins the campaign. The Collector calls it when all pipelines have started.
func (e *Elector) Ready() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.node == nil {
		return errors.New("mortisecollector: Ready of an extension that was not started: call Start before")
	}
	if e.end != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	e.end = func() { cancel(); <-ended }
	node := e.node
	go func() {
		defer close(ended)
		e.campaign(ctx, node)
	}()
	return nil
}

// NotReady ends the campaign. It returns when all stop callbacks have returned and the lock is
// released. The Collector calls it before it stops the pipelines.
func (e *Elector) NotReady() error {
	e.mu.Lock()
	end := e.end
	e.end = nil
	e.mu.Unlock()
	if end != nil {
		end()
	}
	return nil
}

// Shutdown does what NotReady does, if this has not happened, and lets the node of the extension
// leave. It waits for the node until ctx ends, or for 10 s if ctx has no deadline.
func (e *Elector) Shutdown(ctx context.Context) error {
	_ = e.NotReady() // always nil
	e.mu.Lock()
	node := e.node
	e.node = nil
	e.mu.Unlock()
	if node == nil || !e.leaves {
		return nil
	}
	if err := node.Leave(ctx); err != nil {
		return fmt.Errorf("mortisecollector: %w", err)
	}
	return nil
}

func (e *Elector) campaign(ctx context.Context, node *mortise.Node) {
	err := election.New(node, e.key, election.Options{Report: e.report}).Run(ctx, "", e.lead)
	if ctx.Err() == nil {
		e.log.Error("this collector no longer takes part in the election, so its receivers stay stopped: "+
			"restart it when the cause is mended", zap.Error(err))
	}
}

// report gets the errors after which the campaign goes on.
func (e *Elector) report(token mortise.Token, err error) {
	if token == 0 {
		e.log.Warn("no answer to the campaign, which is repeated: check that a majority of the collectors runs and "+
			"that they reach each other", zap.Error(err))
		return
	}
	e.log.Warn("the leadership was lost and the receivers were stopped; this collector campaigns again: if no "+
		"other collector leads, check that a majority of them runs and that they reach each other",
		zap.Uint64("token", uint64(token)), zap.Error(err))
}

// lead runs while this collector leads, and until all receivers have stopped.
func (e *Elector) lead(ctx context.Context, l *election.Leadership) error {
	e.log.Info("this collector leads and starts its receivers", zap.Uint64("token", uint64(l.Token())))
	t := &term{ctx: ctx}
	e.mu.Lock()
	for _, r := range e.receivers {
		t.run(r)
	}
	e.term = t
	e.mu.Unlock()

	<-ctx.Done()
	e.mu.Lock()
	e.term = nil
	e.mu.Unlock()
	warning := time.AfterFunc(hangs, func() {
		e.log.Warn("a receiver has not stopped 10 s after the end of the leadership; this collector neither campaigns " +
			"nor ends before: look for its stop callback in a dump of the goroutines")
	})
	defer warning.Stop()
	t.all.Wait()
	e.log.Info("the receivers of this collector have stopped", zap.Uint64("token", uint64(l.Token())))
	return nil
}
