package transport

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

func lives(life uint64) func(*Config) { return func(c *Config) { c.Life = nodeid.Start(life, "site") } }

// A process on a copied directory has the key of a linked instance, but no higher life number.
// Its streams are refused, and the existing link is not affected. Each side logs the mistake
// once, with both addresses.
func TestCopyIsRefused(t *testing.T) {
	secured(t, func(t *testing.T, w *world, use func(*Config), _ func(int) *forger) {
		a, b := w.node("a", 1, use), w.node("b", 2, use, lives(5))
		b.send(a, "x")
		a.wantCommands("link", b, "x")
		for life := range uint64(5) {
			copied := w.node(fmt.Sprint("copy", life), 2, use, lives(life+1))
			for range 5 {
				copied.sendTo(a.peer())
				synctest.Wait()
				events := copied.seen()
				if len(events) != 1 || !errors.Is(events[0].down, ErrCopy) {
					t.Fatalf("life %d: the copy sees %+v", life+1, events)
				}
				if _, _, err := copied.Ask(t.Context(), "a:1", id(1), nil); err != nil {
					t.Errorf("life %d: a question of the copy: %v", life+1, err) // the copy has the key
				}
				copied.anew()
				time.Sleep(time.Second)
			}
			if n := copied.warnings("copied directory", "addr=a:1", "linked here from b"); n != 1 {
				t.Errorf("%d warnings on the refused side:\n%s", n, copied.log)
			}
			copied.Close()
			if n := a.warnings("copied directory", id(2).String(), "link=b",
				fmt.Sprint("other=copy", life)); n != 1 || a.warnings() != 1 {
				t.Errorf("%d warnings:\n%s", n, a.log)
			}
			a.log.text.Reset()
			time.Sleep(noticeEvery)
			b.send(a, "y")
			a.wantCommands("the link lives", b, "y")
		}
		synctest.Wait()
		if n := len(b.seen()); n != 0 {
			t.Errorf("b sees %d events", n)
		}
	})
}

// After a power loss the restarted instance immediately replaces its old link, which the peer
// still considers open. The handler gets the Down before any frame of the new link.
func TestLaterLifeReplacesItsLink(t *testing.T) {
	for _, dialer := range []string{"b", "a"} {
		t.Run(dialer+" has dialed", func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.node("a", 1), w.node("b", 2, lives(3))
				if dialer == "a" {
					a.send(b, "-")
					synctest.Wait()
				}
				for range 50 {
					b.send(a, "x")
					synctest.Wait()
				}
				a.seen()
				w.net.Cut("a", "b") // b loses its power; a gets no error
				again := w.node("c", 2, lives(4))
				began := time.Now()
				again.sendTo(a.peer())
				synctest.Wait()
				events := a.seen()
				if len(events) != 2 || events[0].down == nil || nodeid.Count(events[0].from.Life) != 3 ||
					string(events[1].frame.Commands) != "for a:1" || events[1].from != again.identity {
					t.Fatalf("want a Down and a frame: %+v", events)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("it took %v", took)
				}
				if n := a.lines("INFO", "has replaced its link", id(2).String(), "link=b", "other=c"); n != 1 ||
					a.warnings() != 0 {
					t.Errorf("%d lines; a restart must not cause a warning:\n%s", n, a.log)
				}
				time.Sleep(time.Minute)
				again.send(a, "y")
				a.wantCommands("afterwards", again, "y")
			})
		})
	}
}

func TestManyKeysDoNotFloodTheLog(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.node("a", 1)
		for n := 2; n <= 101; n++ {
			b := w.node(fmt.Sprint("b", n), n, lives(2))
			b.send(a, "x")
			synctest.Wait()
			b2 := w.node(fmt.Sprint("c", n), n, lives(1))
			b2.sendTo(a.peer())
			b3 := w.node(fmt.Sprint("d", n), n, lives(3))
			b3.sendTo(a.peer())
			synctest.Wait()
		}
		if n := strings.Count(a.log.String(), "\n"); n < 4 || n > noticeKinds+4 {
			t.Errorf("%d lines:\n%s", n, a.log)
		}
		if n := len(a.notices.last); n > noticeKinds+4 {
			t.Errorf("%d kinds are remembered", n)
		}
		time.Sleep(noticeEvery)
		a.log.text.Reset()
		w.node("e", 5, lives(4)).sendTo(a.peer())
		synctest.Wait()
		if n := a.lines("INFO", "has replaced its link", id(5).String()); n != 1 {
			t.Errorf("afterwards %d lines:\n%s", n, a.log)
		}
	})
}
