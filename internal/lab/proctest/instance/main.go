// Instance is the program that the process tests run: a service with a node whose goroutines take
// locks in every available way. The node's Config comes from the environment, with the prefix
// ORDERS. MT_HISTORY names the file for Config.History. MT_HISTORY_WITHOUT contains prefixes of
// keys that the file omits. MT_PROBE_EVERY is the pause between two probes. MT_SLOWER multiplies
// all pauses of the load. MT_CALLERS is the number of additional goroutines that lock and unlock
// their own key all the time.
//
// The program writes a line of JSON, an [event], to standard output for each event and answer, and
// reads lines of JSON, each a [request], from standard input. SIGTERM makes it leave. The end of
// standard input makes it stop the load and close the node, so that no instance remains when a test
// ends abnormally.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/outside"
)

// leaveWithin limits the duration of Leave: an orchestrator's default, minus some time for the rest
// of the shutdown.
const leaveWithin = 25 * time.Second

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "instance:", err)
		os.Exit(1)
	}
}

type instance struct {
	node   *mortise.Node
	load   *load
	inside outside.Inside // set only in the build with the next version of the rules

	mu   sync.Mutex // guards the fields below
	out  *json.Encoder
	held map[string]*mortise.Lock // by the ID of the request
}

func run() error {
	config, err := mortise.ConfigFromEnv("ORDERS")
	if err != nil {
		return err
	}
	config.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	history, err := os.OpenFile(os.Getenv("MT_HISTORY"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer history.Close()
	config.History = historyTo(history)
	pause, err := time.ParseDuration(os.Getenv("MT_PROBE_EVERY"))
	if err != nil {
		return fmt.Errorf("MT_PROBE_EVERY: %w", err)
	}
	slow, callers := 1, 0
	for name, number := range map[string]*int{"MT_SLOWER": &slow, "MT_CALLERS": &callers} {
		if text := os.Getenv(name); text != "" {
			if *number, err = strconv.Atoi(text); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	leave, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	i := &instance{out: json.NewEncoder(os.Stdout), held: map[string]*mortise.Lock{}}
	node, err := mortise.Start(i.withLater(leave), config)
	if err != nil {
		return err
	}
	i.node = node
	i.load = startLoad(node, config.Name, pause, slow, callers)
	go i.ready()
	over := make(chan struct{})
	go func() {
		defer close(over)
		i.serve(os.Stdin)
	}()
	select {
	case <-leave.Done():
		return i.leave()
	case <-over:
		i.load.stop()
		return node.Close()
	}
}

// ready waits until the node can be granted locks, and reports that once. A rolling deploy waits
// for that report.
func (i *instance) ready() {
	if err := i.node.Ready(context.Background()); err == nil {
		i.tell(event{Kind: "ready"})
	}
}

// leave leaves the group as a service does on SIGTERM. The load continues until the node has left.
func (i *instance) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	err := i.node.Leave(ctx)
	i.load.stop()
	i.tell(event{Kind: "gone", Err: text(err)})
	return nil
}

func (i *instance) serve(source io.Reader) {
	lines := bufio.NewScanner(source)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			fmt.Fprintln(os.Stderr, "instance:", err)
			return
		}
		go i.answer(r)
	}
}

func (i *instance) lock(ctx context.Context, r request) (*mortise.Lock, error) {
	switch {
	case r.Op == "keep":
		return i.node.LockSticky(ctx, r.Key, mortise.StickyOptions{})
	case len(r.Keys) > 0:
		return i.node.LockAll(ctx, r.Keys...)
	case r.Path != "":
		return i.node.Acquire(ctx, mortise.Request{Key: r.Path, Tree: true})
	}
	return i.node.Lock(ctx, r.Key)
}

func (i *instance) answer(r request) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.Within))
	defer cancel()
	e := event{Kind: "answer", ID: r.ID}
	as := cmp.Or(r.As, r.Key)
	switch r.Op {
	case "lock", "keep":
		lock, err := i.lock(ctx, r)
		if e.Err = text(err); err == nil {
			e.Token = uint64(lock.Token())
			i.mu.Lock()
			i.held[as] = lock
			i.mu.Unlock()
		}
	case "unlock", "check":
		i.mu.Lock()
		lock := i.held[as]
		if r.Op == "unlock" {
			delete(i.held, as)
		}
		i.mu.Unlock()
		switch {
		case lock == nil:
			e.Err = fmt.Sprintf("%q was not locked by request", as)
		case r.Op == "check":
			e.Err = text(lock.Err())
		default:
			e.Err = text(lock.Unlock(ctx))
		}
	case "ready":
		e.Err = text(i.node.Ready(ctx))
	case "status":
		s := i.node.Status()
		e.Status = &s
		e.Text = s.String()
	case "members":
		var list []mortise.Member
		for m, err := range i.node.Members(ctx, "") {
			if e.Err = text(err); err != nil {
				break
			}
			list = append(list, m)
		}
		e.Status = &mortise.Status{Voters: list} // a Status has no other list of members
	case "health":
		h, err := i.node.Health(ctx)
		e.Err = text(err)
		e.Status = &mortise.Status{FaultyDisks: h.Disks}
	case "grow":
		i.grow(ctx, r.Key)
	case "later":
		e.Text = i.later()
	case "quiet": // ends the load, which releases its locks
		i.load.stop()
	default:
		e.Err = fmt.Sprintf("no request %q", r.Op)
	}
	i.tell(e)
}

func (i *instance) tell(e event) {
	i.mu.Lock()
	defer i.mu.Unlock()
	_ = i.out.Encode(e)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
