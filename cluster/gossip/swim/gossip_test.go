package swim

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

func TestInstancesSeeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t)
		defer w.stop()
		w.crowd(5)
		i := w.all[4]
		m := i.first
		m.Group, m.At, m.Leader = 7, 9, true
		i.Tell(m)
		time.Sleep(time.Minute) // packets go to random members, and full exchanges follow every 30 s
		for _, o := range w.all {
			if got := o.sees()[i.first.Name]; got != m {
				t.Errorf("%s sees %+v, want %+v", o.first.Name, got, m)
			}
		}
		began := time.Now()
		i.Leave(2 * time.Second)
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("the goodbye took %v", d)
		}
		i.stop()
		time.Sleep(time.Second)
		for _, o := range w.all {
			if len(o.sees()) != 4 {
				t.Errorf("%s sees %d after the goodbye, want 4", o.first.Name, len(o.sees()))
			}
		}
	})
}

// TestAnInstanceAloneRests checks that memberlist, which has a timer of 200 ms, does not run before
// another instance is known, and that the others see what was told before.
func TestAnInstanceAloneRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t)
		defer w.stop()
		alone := w.start(0, label)
		m := alone.first
		m.Group, m.Leader = 7, true
		alone.Tell(m)
		time.Sleep(time.Minute)
		if alone.running() != nil {
			t.Fatal("memberlist runs in an instance that is alone")
		}
		if got := alone.sees()[m.Name]; got != m {
			t.Errorf("it sees itself as %+v, want %+v", got, m)
		}
		if err := w.start(1, label).Join(addrOf(0)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if !w.allSeeAll() || w.all[1].sees()[m.Name] != m {
			t.Errorf("the second sees %+v", w.all[1].sees())
		}
	})
}

// TestAnInstanceAloneEnds checks that gossip which was never joined leaves and ends at once, and
// does not begin afterwards.
func TestAnInstanceAloneEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t)
		defer w.stop()
		for _, leaves := range []bool{false, true} {
			alone, began := w.start(0, label), time.Now()
			if leaves {
				alone.Leave(time.Minute)
				if err := w.start(1, label).Join(addrOf(0)); err == nil {
					t.Error("an instance that has left was joined")
				}
			}
			alone.stop()
			if took := time.Since(began); took > time.Second && !leaves {
				t.Errorf("the end took %v", took)
			}
			if err := alone.Join(addrOf(1)); err == nil || alone.running() != nil {
				t.Errorf("gossip that has ended begins again: %v", err)
			}
		}
	})
}

// TestAnInstanceThatIsCutOffIsGone checks that an instance that is cut off disappears, and appears
// again only after a Join.
func TestAnInstanceThatIsCutOffIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t)
		defer w.stop()
		w.crowd(3)
		w.cut(addrOf(2), true)
		time.Sleep(2 * time.Minute)
		if n := len(w.all[0].sees()); n != 2 {
			t.Fatalf("%d are seen, want 2", n)
		}
		if err := w.all[0].Join(addrOf(2)); err == nil {
			t.Error("an address that is cut off was joined")
		}
		w.cut(addrOf(2), false)
		time.Sleep(2 * time.Minute)
		if w.allSeeAll() {
			t.Fatal("the cut has healed by itself: this test, and the search for lost peers, are for nothing")
		}
		if err := w.all[0].Join(addrOf(2)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if !w.allSeeAll() {
			t.Error("not all see all")
		}
	})
}

func TestALabelKeepsClustersApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t)
		defer w.stop()
		w.start(0, label)
		w.start(1, "another")
		if err := w.all[0].Join(addrOf(1)); err == nil {
			t.Error("another cluster was joined")
		}
		time.Sleep(10 * time.Second)
		for _, i := range w.all {
			if len(i.sees()) != 1 {
				t.Errorf("%s sees %d, want itself alone", i.first.Name, len(i.sees()))
			}
		}
	})
}

// TestCloseEndsEverythingAtOnce checks that Close does not wait, even for silent peers. The
// synctest bubble fails if a goroutine remains.
func TestCloseEndsEverythingAtOnce(t *testing.T) {
	for _, silent := range []bool{false, true} {
		for _, after := range []time.Duration{0, time.Millisecond, 500 * time.Millisecond, 1300 * time.Millisecond,
			7 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				w := newWeb(t)
				w.crowd(3)
				w.cut(addrOf(1), silent)
				w.cut(addrOf(2), silent)
				time.Sleep(after)
				began := time.Now()
				w.all[0].stop()
				if d := time.Since(began); d > 0 {
					t.Errorf("after %v, others silent: %v: Close took %v", after, silent, d)
				}
				w.stop()
			})
		}
	}
}

// TestAStreamThatOpensDuringCloseIsClosed checks that a dial which succeeds after Close has closed
// all streams does not leave one behind.
func TestAStreamThatOpensDuringCloseIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t)
		w.crowd(2)
		n := w.all[0]
		synctest.Wait()
		n.port.late = make(chan net.Conn, 1)
		joined := make(chan error, 1)
		go func() { joined <- n.Join(addrOf(1)) }()
		synctest.Wait()
		n.stop()
		if err := <-joined; err == nil {
			t.Error("Join of a closed instance succeeds")
		}
		if _, err := (<-n.port.late).Write([]byte{0}); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the stream is still open: %v", err)
		}
		w.stop()
	})
}

// TestCloseWaitsForTheGoodbye checks Close during Leave. memberlist panics if it is shut down while
// it sends the announcement.
func TestCloseWaitsForTheGoodbye(t *testing.T) {
	for _, moment := range []time.Duration{0, 37, 71, 113, 167} {
		synctest.Test(t, func(t *testing.T) {
			w := newWeb(t)
			defer w.stop()
			w.crowd(3)
			time.Sleep(moment * time.Millisecond)
			go w.all[2].Leave(2 * time.Second)
			synctest.Wait()
			gone := w.all[2]
			gone.stop()
			gone.Leave(2 * time.Second) // after Close, Leave does nothing
			time.Sleep(time.Second)
			if n := len(w.all[0].sees()); n != 2 {
				t.Errorf("a second later %d are seen, want 2", n)
			}
		})
	}
}

// TestGhostsAreBounded checks that a process with the secret can invent only a limited number of
// members, and that the real instances still see each other.
func TestGhostsAreBounded(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t)
		defer w.stop()
		w.crowd(3)
		attacker := w.listen(addrOf(65))
		const ghosts = 3 * maxMembers
		for i := 0; i < ghosts; i += 4 {
			var parts [][]byte
			for n := i; n < i+4; n++ {
				m := gossip.Meta{Instance: nodeidtest.ID(uint64(n) + 1e6), Name: fmt.Sprint("ghost-", n),
					Addr: "10.66.0.1:7947"}
				parts = append(parts, append([]byte{4}, aliveBody(fmt.Sprintf("%024d", n), 1, m)...))
			}
			packet := labelled(compound(parts...), label)
			if !sound(packet) {
				t.Fatal("the packet of the test is not sound")
			}
			if err := attacker.WriteTo(packet, addrOf(0)); err != nil {
				t.Fatal(err)
			}
			if i%64 == 0 {
				time.Sleep(10 * time.Millisecond)
			}
		}
		time.Sleep(time.Second)
		i := w.all[0]
		members, real := i.sees(), 0
		for _, m := range members {
			if !strings.HasPrefix(m.Name, "ghost") {
				real++
			}
		}
		if len(members) > maxMembers || len(members) < maxMembers/2 || real != 3 {
			t.Errorf("%d members, %d of them real", len(members), real)
		}
		if known := i.running().NumMembers(); known > maxMembers {
			t.Errorf("memberlist knows %d", known)
		}
	})
}

// TestHostileExchangesHoldNoMemory checks that exchanges with a million announced members, wrong
// lengths or incomplete versions hold little memory. Honest exchanges continue.
func TestHostileExchangesHoldNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t)
		defer w.stop()
		w.crowd(2)
		attacker := w.listen(addrOf(65))
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		lie := append(text([]byte{0x81}, "Name"), 0xdb, 0x7f, 0xff, 0xff, 0xff, 'x')
		for _, attack := range [][]byte{
			header(1<<20, 0), header(1, 20<<20), append(header(maxExchangeNodes, 0), lie...),
			append(header(1, 0), exchanged(0xa1, 1)...),
		} {
			for range 16 {
				conn, err := attacker.DialStream(t.Context(), addrOf(0))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				go func() { _, _ = conn.Write(labelled(attack, label)) }()
				go func() { _, _ = io.Copy(io.Discard, conn) }() // an unread answer would block memberlist
			}
			synctest.Wait()
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 64<<20 {
			t.Errorf("%d MiB are held", held>>20)
		}
		time.Sleep(time.Minute)
		if !w.allSeeAll() {
			t.Error("not all see all")
		}
	})
}
