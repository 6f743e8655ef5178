package mortisetest

import (
	"context"
	"errors"
	"net"
	"reflect"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/clock"
)

// set gives a field another value, and reports whether it can.
func set(field reflect.Value) bool {
	if !field.CanSet() {
		return false
	}
	switch field.Kind() {
	case reflect.String:
		field.SetString("other")
	case reflect.Bool:
		field.SetBool(!field.Bool())
	case reflect.Int, reflect.Int64:
		field.SetInt(field.Int() + 1)
	case reflect.Slice:
		field.Set(reflect.MakeSlice(field.Type(), 1, 1))
	case reflect.Map:
		field.Set(reflect.MakeMap(field.Type()))
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
	case reflect.Struct:
		return set(field.Field(0))
	case reflect.Func:
		field.Set(reflect.MakeFunc(field.Type(), func([]reflect.Value) []reflect.Value { return nil }))
	default:
		return false
	}
	return true
}

// TestConfigureMayChangeAllButFourFields sets each field of a configuration alone. Four of them are
// refused. Any other is kept, and no other field changes with it, but for Insecure.
func TestConfigureMayChangeAllButFourFields(t *testing.T) {
	refused := []string{"Bind", "Advertise", "Join", "JoinFunc"}
	secure := []string{"Secret", "TLS", "TLSFiles"}
	own := idle(t, 3, Options{}).config(1)
	if own.Logger == nil {
		t.Error("there is no logger")
	}
	own.Logger = nil
	if want := (mortise.Config{Name: "node-1", Bind: "10.0.0.2:7947", SessionTTL: 2 * time.Second, Grace: -1,
		Insecure: true, Replicas: 3, Join: []string{"10.0.0.1:7947", "10.0.0.2:7947", "10.0.0.3:7947"}}); !reflect.DeepEqual(
		own, want) {
		t.Errorf("by default %+v, want %+v", own, want)
	}
	for i := range reflect.TypeFor[mortise.Config]().NumField() {
		name := reflect.TypeFor[mortise.Config]().Field(i).Name
		var want, got mortise.Config
		could := true
		failures := record(t, func(tb testing.TB) {
			got = idle(tb, 3, configured(func(c *mortise.Config) {
				could = set(reflect.ValueOf(c).Elem().Field(i))
				want = *c
			})).config(1)
		})
		switch {
		case slices.Contains(refused, name):
			wantFailures(t, name, failures, "has set Bind, Advertise, Join or JoinFunc")
			continue
		case len(failures) > 0:
			t.Errorf("%s: %q", name, failures)
		case slices.Contains(secure, name):
			want.Insecure = false
		}
		if could && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// TestTheClockOfAMachine compares each reading, after each thing that can happen to a clock.
func TestTheClockOfAMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		for i, step := range []struct {
			do   func()
			want time.Duration
		}{
			{func() {}, time.Hour},
			{func() { time.Sleep(time.Second) }, time.Hour + time.Second},
			{func() { m.leap(time.Minute) }, time.Hour + 61*time.Second},
			{func() { m.leap(0) }, time.Hour + 61*time.Second},
			{func() { m.run(2) }, time.Hour + 61*time.Second},
			{func() { time.Sleep(time.Second) }, time.Hour + 63*time.Second},
			{func() { m.run(0) }, time.Hour + 63*time.Second},
			{func() { time.Sleep(time.Second) }, time.Hour + 63*time.Second},
			{func() { m.run(1) }, time.Hour + 63*time.Second},
			{func() { m.hide(true) }, time.Hour + 63*time.Second},
			{func() { time.Sleep(time.Second) }, time.Hour + 63*time.Second},
			{func() { m.leap(time.Minute) }, time.Hour + 63*time.Second},
			{func() { m.hide(false) }, time.Hour + 124*time.Second},
			{func() { time.Sleep(time.Second) }, time.Hour + 125*time.Second},
			{func() { m.leap(1<<63 - 1) }, time.Duration(maxLeap) + 2*time.Second}, // since the last change of the rate
			{func() { m.leap(time.Hour) }, time.Duration(maxLeap) + 2*time.Second},
		} {
			if step.do(); m.Now() != clock.Time(step.want) {
				t.Errorf("after step %d the clock shows %v, want %v", i, time.Duration(m.Now()), step.want)
			}
		}
	})
}

type endlessConn struct {
	net.Conn
	closed int
}

func (c *endlessConn) Close() error { c.closed++; return nil }

// A dial that was under way when its node was killed fails, and its connection is closed.
func TestADialThatKillOvertakes(t *testing.T) {
	down := errors.New("down")
	for _, row := range []struct {
		fails, killed bool
	}{{false, false}, {true, false}, {false, true}, {true, true}} {
		conn, l := &endlessConn{}, &life{}
		l.dial = func(_ context.Context, address string) (net.Conn, error) {
			if address != "10.0.0.1:7947" {
				t.Errorf("it dials %s", address)
			}
			l.over.Store(row.killed)
			if row.fails {
				return nil, down
			}
			return conn, nil
		}
		got, err := l.Dial(t.Context(), "10.0.0.1:7947")
		good := !row.fails && !row.killed
		if (got == net.Conn(conn)) != good || !good && got != nil || row.fails && err != down || good && err != nil ||
			!row.fails && row.killed && !errors.Is(err, syscall.ENETDOWN) || conn.closed > 0 == (good || row.fails) {
			t.Errorf("%+v: %v, %v, closed %d times", row, got, err, conn.closed)
		}
	}
}

// The clock of a node stops before its connections are cut, and goes on before they are healed,
// because a node must not receive data at a wrong time.
func TestAPauseIsOneOfTheClockFirst(t *testing.T) {
	c := idle(t, 2, Options{})
	node, err := mortise.Start(t.Context(), mortise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	c.places[0].node = node
	for _, paused := range []bool{true, false} {
		state := func() (is, cut bool) {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.places[0].paused, c.closed[route{0, 1}] || c.closed[route{1, 0}]
		}
		c.places[0].machine.mu.Lock() // the clock cannot be changed now
		done := make(chan bool)
		go func() {
			defer close(done)
			if paused {
				c.Pause(0)
			} else {
				c.Resume(0)
			}
		}()
		for is, _ := state(); is != paused; is, _ = state() {
			runtime.Gosched()
		}
		for range 1000 {
			if _, cut := state(); cut == paused {
				t.Fatalf("paused %v: the connections changed before the clock", paused)
			}
			runtime.Gosched()
		}
		c.places[0].machine.mu.Unlock()
		<-done
		if is, cut := state(); is != paused || cut != paused || c.places[0].machine.hidden != paused {
			t.Errorf("paused %v: %v, cut %v, hidden %v", paused, is, cut, c.places[0].machine.hidden)
		}
	}
}

// TestTheHoldsOfANode counts the holds of a node among those of others. Some share a key with more
// holders than a list shows, one is of several keys, one request waits, and LockDelay keeps one.
func TestTheHoldsOfANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewWith(t, 3, Options{MayHold: true})
		leader := c.Leader()
		mine, other := c.Follower(), (c.Follower()+1)%3
		if other == leader {
			other = (other + 1) % 3
		}
		acquire := func(i int, r mortise.Request) {
			t.Helper()
			if _, err := c.Node(i).Acquire(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		count := func(want int) {
			t.Helper()
			got, err := c.tokens(t.Context(), leader, c.name(mine))
			if err != nil || got != want {
				t.Errorf("%d holds, %v, want %d", got, err, want)
			}
		}
		count(0)
		for range 4 {
			acquire(other, mortise.Request{Key: "shared", Mode: mortise.Shared})
		}
		count(0)
		for range 3 {
			acquire(mine, mortise.Request{Key: "shared", Mode: mortise.Shared})
		}
		count(3)
		acquire(mine, mortise.Request{Key: "a", Also: []mortise.Part{{Key: "b"}, {Key: "c"}}})
		count(4)
		acquire(other, mortise.Request{Key: "taken"})
		go c.Node(mine).Lock(t.Context(), "taken")
		c.Await("taken", 1, 1)
		count(4)
		acquire(mine, mortise.Request{Key: "delayed", LockDelay: time.Hour})
		count(5)
		c.Lose(mine)
		c.Await("a", 0, 0)
		count(0)
	})
}

// TestTheFollowerIsTheNextNode pauses one follower after the other. With one voter, the leader
// stays.
func TestTheFollowerIsTheNextNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 4
		c := NewWith(t, n, configured(func(c *mortise.Config) { c.Voters = 1 }))
		leader := c.Leader()
		for step := 1; step < n; step++ {
			if got, want := c.Follower(), (leader+step)%n; got != want || c.Leader() != leader {
				t.Fatalf("the follower is %d, want %d; the leader is %d, and was %d", got, want, c.Leader(), leader)
			}
			c.Pause((leader + step) % n)
		}
		for step := 1; step < n; step++ {
			c.Resume((leader + step) % n)
		}
		c.Ready()
	})
}
