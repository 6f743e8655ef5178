package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Thousands of connections are silent from the beginning, are silent after a few bytes, or send one
// byte after another. An instance that connects at the same time is linked immediately.
func TestSilenceHoldsNoTurn(t *testing.T) {
	secured(t, func(t *testing.T, w *world, use func(*Config), forge func(int) *forger) {
		a, b := w.node("a", 1, use), w.node("b", 2, use)
		a.listener.turns.atOnce = 1
		first := []byte(linkPreface)
		if a.config.TLS != nil {
			first = clientHello(a.config.TLS.ClientTLS())
		}
		for i := range 5000 {
			conn := w.raw("a:1")
			t.Cleanup(func() { conn.Close() })
			switch i % 4 {
			case 1:
				_, _ = conn.Write(first[:3])
			case 2:
				_, _ = conn.Write(first) // the connection sends no more bytes
			case 3:
				go func() {
					for _, c := range first {
						if _, err := conn.Write([]byte{c}); err != nil {
							return
						}
						time.Sleep(100 * time.Millisecond)
					}
				}()
			}
		}
		synctest.Wait()
		began := time.Now()
		b.send(a, "x")
		a.wantCommands("among silent connections", b, "x")
		if _, _, err := b.Ask(t.Context(), "a:1", id(1), nil); err != nil || time.Since(began) > 0 {
			t.Errorf("a question: %v after %v", err, time.Since(began))
		}
		time.Sleep(11 * time.Second) // until the slow connections are closed
	})
}

func clientHello(config *tls.Config) []byte {
	near, far := net.Pipe()
	config.ServerName = "a"
	go func() {
		_ = tls.Client(near, config).Handshake()
		near.Close()
	}()
	b := make([]byte, 16<<10)
	n, _ := far.Read(b)
	far.Close()
	return b[:n]
}

func TestHandshakesWaitForTurns(t *testing.T) {
	secured(t, func(t *testing.T, w *world, use func(*Config), forge func(int) *forger) {
		a, b := w.node("a", 1, use), w.node("b", 2, use)
		hold := &turn{of: a.listener.turns}
		for range a.listener.turns.atOnce {
			hold.held = false
			if err := hold.take(); err != nil {
				t.Fatal(err)
			}
		}
		b.send(a, "x")
		time.Sleep(time.Second)
		if len(a.seen()) != 0 || b.Linked(id(1)) {
			t.Error("linked without a turn")
		}
		hold.end()
		a.wantCommands("with a turn", b, "x")
		if busy := a.listener.turns.busy; busy != a.listener.turns.atOnce-1 {
			t.Errorf("%d turns are held", busy)
		}
	})
}

// A handshake leaves its line if its connection is closed or its time is up.
func TestTurnsComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &turns{atOnce: 1, limit: 5 * time.Second}
		all.proved("known")
		all.proved("voter")
		all.prefer([]string{"voter:1"})
		hold := &turn{of: all}
		if err := hold.take(); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		var errs []error
		wait := func(name, addr string, begun bool) (gone chan struct{}) {
			gone = make(chan struct{})
			c := &turn{of: all, gone: gone, addr: addr, by: time.Now().Add(all.limit), begun: begun}
			go func() {
				err := c.take()
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					errs = append(errs, err)
					return
				}
				order = append(order, name)
				c.end()
			}()
			synctest.Wait()
			return gone
		}
		wait("too late", "other", false)
		time.Sleep(time.Second)
		wait("first other", "other", false)
		wait("second other", "another", false)
		close(wait("closed", "known", false))
		wait("begun other", "other", true)
		wait("known", "known", false)
		wait("begun known", "known", true)
		wait("voter", "voter", false)
		time.Sleep(all.limit - time.Second)
		hold.end()
		synctest.Wait()
		if want := []string{"voter", "begun known", "known", "begun other", "first other",
			"second other"}; !slices.Equal(order, want) {
			t.Errorf("%q", order)
		}
		if len(errs) != 2 || !errors.Is(errors.Join(errs...), errNoTurn) || all.busy != 0 {
			t.Errorf("%v, %d turns are held", errs, all.busy)
		}
	})
}

// A turn that comes just when its handshake gives up is passed on.
func TestATurnThatComesTooLateIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &turns{atOnce: 1}
		if err := (&turn{of: all}).take(); err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		late := &turn{of: all, gone: gone, by: time.Now().Add(time.Hour)}
		ended := make(chan error)
		go func() { ended <- late.take() }()
		synctest.Wait()
		all.mu.Lock()
		close(gone) // it gives up, and waits for the mutex
		all.pass()
		all.mu.Unlock()
		if err := <-ended; !errors.Is(err, errNoTurn) || all.busy != 0 {
			t.Errorf("%v, %d turns are held", err, all.busy)
		}
	})
}

func TestKnownAddressesAreBounded(t *testing.T) {
	a, now := addrs{}, time.Now()
	for i := range 2 * maxAddrs {
		a.add("first", now)
		a.add(fmt.Sprint(i), now)
	}
	if len(a.at) != maxAddrs || a.order.Len() != maxAddrs || a.has("0", now) || !a.has("first", now) {
		t.Errorf("%d addresses", len(a.at))
	}
	if a.has("first", now.Add(addrsKept)) {
		t.Error("an address is known forever")
	}
}

// A failure is the peer's fault unless this node has made the handshake wait.
func TestOutOfTime(t *testing.T) {
	stood := &turn{stood: true}
	if !stood.outOfTime(errNoTurn) || !stood.outOfTime(fmt.Errorf("read: %w", os.ErrDeadlineExceeded)) {
		t.Error("an overload caused a warning")
	}
	if stood.outOfTime(errors.New("another secret")) || new(turn).outOfTime(os.ErrDeadlineExceeded) ||
		(*turn)(nil).outOfTime(errNoTurn) {
		t.Error("a fault of the peer is taken for an overload")
	}
}
