//go:build linux

package process

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// TestTwoStartsInOneProcess starts a node with the directory of another one in the same process,
// again and again, while a goroutine looks at the lock of the first one all the time. The start
// fails until the first node has closed, and the lock is granted on only after it has ended.
func TestTwoStartsInOneProcess(t *testing.T) {
	for name, run := range map[string]bool{"with a directory": false, "with a run directory": true} {
		t.Run(name, func(t *testing.T) {
			eachFileSystem(t, func(t *testing.T, dir string) { startsBeside(t, dir, run) })
		})
	}
}

func startsBeside(t *testing.T, dir string, run bool) {
	addresses := freeAddresses(t, 3)
	config := mortise.Config{Join: addresses, Founders: []string{"founder"}, SessionTTL: restartTTL, Grace: -1,
		Insecure: true, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	start := func(name, address, dir string) (*mortise.Node, error) {
		c := config
		if c.Name, c.Bind = name, address; run {
			c.RunDir = dir
		} else {
			c.Dir = dir
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		n, err := mortise.Start(ctx, c)
		if err == nil {
			t.Cleanup(func() { _ = n.Close() })
			err = n.Ready(ctx)
		}
		return n, err
	}
	waiter, err := start("founder", addresses[0], "")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "holder")
	first, err := start("holder", addresses[1], path)
	if err != nil {
		t.Fatal(err)
	}
	for round := range restartRounds() {
		held, err := first.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		var over atomic.Bool // another caller has the lock
		watched, refused, second := make(chan struct{}), make(chan struct{}), make(chan *mortise.Node)
		go func() {
			defer close(watched)
			for {
				had := over.Load()
				if err := held.Err(); err == nil && had {
					t.Error("two callers hold the lock")
				} else if err == nil {
					continue
				}
				return
			}
		}()
		go func() {
			defer close(second)
			for tries := 0; ; tries++ {
				n, err := start("holder", addresses[(round+1)%2+1], path)
				if err == nil {
					second <- n
					return
				}
				if tries == 0 {
					close(refused)
				}
				if !strings.Contains(err.Error(), "is open in another process") {
					t.Error(err)
					return
				}
			}
		}()
		granted := make(chan time.Duration, 1)
		<-refused
		began := time.Now()
		go func() {
			next, err := waiter.Lock(t.Context(), "k")
			over.Store(true)
			granted <- time.Since(began)
			if err == nil {
				err = next.Unlock(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		}()
		if err := first.Close(); err != nil {
			t.Error(err)
		}
		<-watched
		if first = <-second; first == nil {
			t.FailNow()
		}
		if took := <-granted; took > restartTTL/2 {
			t.Errorf("the next holder has waited %v", took)
		}
	}
}
