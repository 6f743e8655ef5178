package mortisecollector

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/mortisetest"
)

func (w *watch) check(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.IsSorted(w.tokens) || len(w.tokens) == 0 {
		t.Errorf("tokens %v", w.tokens)
	}
	t.Log(strings.Join(w.events, ", "))
}

// The leader of three is killed. Then both receivers run in another collector.
func TestTheLeaderIsKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		cluster, hosts := three(t, w)
		first := w.leader(cluster, -1)
		cluster.Kill(first)
		second := w.leader(cluster, first)
		synctest.Wait()
		if n := w.count(); n != 2 {
			t.Errorf("%d receivers run, the leader is %d", n, second)
		}
		for _, h := range hosts {
			h.shutDown(t)
		}
		if w.count() != 0 {
			t.Error("receivers run after the shutdown")
		}
		w.check(t)
	})
}

// A leader that is cut off stops its receivers before another one starts them, says in its log what
// to do, and leads again when the others have gone.
func TestTheLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		cluster, hosts := three(t, w)
		first := w.leader(cluster, -1)
		cluster.Isolate(first)
		w.leader(cluster, first)
		cluster.Heal()
		if text := hosts[first].logged.FilterMessageSnippet("check that a majority").All(); len(text) == 0 {
			t.Errorf("the log has %v", hosts[first].logged.All())
		}
		for i, h := range hosts {
			if i != first {
				h.shutDown(t)
			}
		}
		if again := w.leader(cluster, -1); again != first {
			t.Errorf("%d leads, want %d", again, first)
		}
		hosts[first].shutDown(t)
		cluster.Await(key, 0, 0)
		w.check(t)
	})
}

// A collector in good order is followed only when its receivers have stopped, and at once then. A
// receiver that hangs does not keep the other one running.
func TestStopIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, cluster := newWatch(t), mortisetest.New(t, 2)
		stops := make(chan struct{})
		first, second := newHost(t, NewFactoryFor(cluster.Node(0)), nil), newHost(t, NewFactoryFor(cluster.Node(1)), nil)
		first.run(t, fakeReceiver{watch: w, kind: "objects", at: "0", beforeStop: func() { <-stops }},
			fakeReceiver{watch: w, kind: "events", at: "0"})
		cluster.Until("the first leads", func() bool { return w.isRunning("objects@0", "events@0") })
		second.run(t, fakeReceiver{watch: w, kind: "objects", at: "1"})
		done := make(chan struct{})
		go func() {
			defer close(done)
			first.shutDown(t)
		}()
		time.Sleep(time.Minute)
		if !w.isRunning("objects@0") || w.isRunning("events@0") || w.isRunning("objects@1") {
			t.Errorf("%v", w.running)
		}
		if n := first.logged.FilterMessageSnippet("has not stopped").Len(); n != 1 {
			t.Errorf("%d warnings", n)
		}
		close(stops)
		<-done
		cluster.Until("the second leads", func() bool { return w.isRunning("objects@1") })
		second.shutDown(t)
		w.check(t)
	})
}

// A lost leadership whose stop callback hangs is not followed by a start in the same collector.
func TestNoStartBeforeTheFormerStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, cluster := newWatch(t), mortisetest.NewWith(t, 1, mortisetest.Options{MayHold: true})
		stops := make(chan struct{})
		h := newHost(t, NewFactoryFor(cluster.Node(0)), nil)
		h.run(t, fakeReceiver{watch: w, kind: "objects", at: "0", beforeStop: func() { <-stops }})
		cluster.Until("it leads", func() bool { return w.isRunning("objects@0") })
		cluster.Lose(0)
		time.Sleep(time.Minute)
		cluster.Await(key, 0, 0)
		w.mu.Lock()
		if len(w.events) != 1 {
			t.Errorf("%v", w.events)
		}
		w.mu.Unlock()
		close(stops)
		cluster.Until("it leads again", func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return len(w.events) == 3
		})
		h.shutDown(t)
		w.check(t)
	})
}

// Receivers register before Start, after Ready, and while their collector leads. None is called
// before Ready.
func TestReceiversRegisterAtAnyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, cluster := newWatch(t), mortisetest.New(t, 1)
		h := newHost(t, NewFactoryFor(cluster.Node(0)), nil)
		e := h.elector()
		register := func(kind string) {
			if err := (fakeReceiver{watch: w, kind: kind, at: "0"}).start(h); err != nil {
				t.Error(err)
			}
		}
		if err := e.Ready(); err == nil || !strings.Contains(err.Error(), "call Start before") {
			t.Errorf("Ready before Start: %v", err)
		}
		register("a")
		if err := e.Start(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		register("b")
		time.Sleep(time.Minute)
		if w.count() != 0 {
			t.Error("a receiver was started before Ready")
		}
		for range 2 { // the second call is ignored
			if err := e.Ready(); err != nil {
				t.Fatal(err)
			}
		}
		register("c")
		cluster.Until("it leads", func() bool { return w.isRunning("a@0", "b@0", "c@0") })
		register("d")
		e.SetCallBackFuncs(nil, nil)
		synctest.Wait()
		if !w.isRunning("d@0") {
			t.Error("a receiver that registers while the collector leads does not run")
		}
		if err := e.NotReady(); err != nil || w.count() != 0 {
			t.Errorf("after NotReady %d receivers run, %v", w.count(), err)
		}
		if err := e.Ready(); err != nil {
			t.Error(err)
		}
		cluster.Until("it leads again", func() bool { return w.count() == 4 })
		h.shutDown(t)
		h.shutDown(t)
		if cluster.Node(0).Err() != nil {
			t.Error("a shared node has left with the extension")
		}
		w.check(t)
	})
}

// The node of the program leaves first: the receivers stop, and the log says what to do.
func TestTheNodeLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, cluster := newWatch(t), mortisetest.New(t, 1)
		h := newHost(t, NewFactoryFor(cluster.Node(0)), nil)
		h.run(t, fakeReceiver{watch: w, kind: "objects", at: "0"})
		cluster.Until("it leads", func() bool { return w.isRunning("objects@0") })
		if err := cluster.Node(0).Leave(context.Background()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := h.logged.FilterMessageSnippet("restart it").Len(); n != 1 || w.count() != 0 {
			t.Errorf("%d receivers run, the log has %v", w.count(), h.logged.All())
		}
		h.shutDown(t)
	})
}

// Two extensions of one key are two candidates, also on one node: one of them leads.
func TestTwoExtensionsOfOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, cluster := newWatch(t), mortisetest.New(t, 1)
		var hosts []*host
		for i := range 2 {
			h := newHost(t, NewFactoryFor(cluster.Node(0)), nil)
			h.run(t, fakeReceiver{watch: w, kind: "objects", at: fmt.Sprint(i)})
			hosts = append(hosts, h)
		}
		cluster.Await(key, 1, 1)
		cluster.Until("one leads", func() bool { return w.count() == 1 })
		for _, h := range hosts {
			h.shutDown(t)
		}
		w.check(t)
	})
}

// A collector that leads is killed and started again, with the same name and address. It waits as
// any other.
func TestARestartWithTheSameName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		cluster, hosts := three(t, w)
		first := w.leader(cluster, -1)
		cluster.Kill(first)
		again := newHost(t, NewFactoryFor(cluster.Start(first)), nil)
		again.run(t, fakeReceiver{watch: w, kind: "objects", at: "again"})
		w.leader(cluster, first)
		if w.isRunning("objects@again") {
			t.Error("the restarted collector has overtaken those that waited")
		}
		for _, h := range append(hosts, again) {
			h.shutDown(t)
		}
		w.check(t)
	})
}
