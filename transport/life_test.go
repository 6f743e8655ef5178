package transport

import (
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

func TestConfigNamesEveryMistake(t *testing.T) {
	_, err := New(Config{})
	for _, want := range []string{"Cluster", "Self.Key", "Listener", "Dial", "Handler"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named: %v", want, err)
		}
	}
}

// A gRPC server closes the connections of clients that ping too often.
func TestAnHourOfSilence(t *testing.T) {
	slow.UnderRace(t)
	inBubble(t, func(t *testing.T, w *world) {
		a, b, c := w.node("a", 1), w.node("b", 2), w.node("c", 3)
		a.send(b, "x")
		c.send(a, "x")
		x, y := streamPair(t, a, b)
		synctest.Wait()
		a.seen()
		b.seen()
		time.Sleep(time.Hour)
		a.send(b, "y")
		b.wantCommands("after an hour", a, "y")
		for _, n := range []*node{a, b, c} {
			if got := n.seen(); len(got) != 0 {
				t.Errorf("events: %+v", got)
			}
		}
		if got := a.Counts(); got.Links != 2 || got.Accepted != 1 {
			t.Errorf("%+v", got)
		}
		_, _ = x.Write([]byte("z"))
		buf := make([]byte, 1)
		if _, err := io.ReadFull(y, buf); err != nil || buf[0] != 'z' {
			t.Errorf("the byte stream: %v", err)
		}
	})
}

func TestSilentPeerIsFoundOut(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		a.send(b, "x")
		synctest.Wait()
		b.seen()
		time.Sleep(time.Hour)
		if ea, eb := a.seen(), b.seen(); len(ea)+len(eb) > 0 {
			t.Fatalf("idle, a saw %+v\nb saw %+v", ea, eb)
		}
		w.net.Cut("a", "b")
		time.Sleep(keepaliveEvery*(maxSilentKeepalives+1) + time.Millisecond)
		if ea, eb := a.seen(), b.seen(); len(ea) != 1 || len(eb) != 1 || ea[0].down == nil || eb[0].down == nil {
			t.Fatalf("a saw %+v\nb saw %+v", ea, eb)
		}
	})
}

func TestCloseIsQuickAndFlushes(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b, c := w.node("a", 1), w.node("b", 2), w.node("c", 3)
		a.send(b, "x")
		c.send(a, "x")
		synctest.Wait()
		for range 100 {
			a.send(b, strings.Repeat("y", 10_000))
			a.send(c, strings.Repeat("z", 10_000))
		}
		began := time.Now()
		a.Close()
		if took := time.Since(began); took > 0 {
			t.Errorf("took %v", took)
		}
		synctest.Wait()
		for _, n := range []*node{b, c} {
			text, downs := commands(n.seen(), id(1))
			if len(text) < 1_000_000 || downs != 1 {
				t.Errorf("%d bytes, %d downs", len(text), downs)
			}
		}
	})
}

func TestListenerThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		a.config.Listener.(net.Listener).Close()
		synctest.Wait()
		if !strings.Contains(a.log.String(), "the listener failed") {
			t.Errorf("the log says %q", a.log)
		}
		a.send(b, "x")
		b.wantCommands("dialing still works", a, "x")
	})
}
