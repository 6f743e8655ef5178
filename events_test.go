package mortise

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/modes"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/internal/trace"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// fullEvent returns an event of the leader whose fields are all set.
func fullEvent() *query.Event {
	return &query.Event{Position: 3, What: uint32(lockfsm.Ended), Cause: uint32(lockfsm.Evicted),
		Part: &query.Part{Key: []byte("k"), Mode: uint32(lockfsm.ModeS), Tree: true}, Token: 5, Session: 6,
		Record: replica.Record{Name: "holder"}.Encode(), At: 7000, By: []byte("by"), Reason: []byte("reason"),
		Data:  &query.Data{Value: []byte("data"), Revision: 9},
		Value: shown.Encode("value", map[string]string{"l": "x"}, nil)}
}

// TestEachFieldOfAnEventIsTold compares a whole event, and checks that each field of the leader's
// event changes it.
func TestEachFieldOfAnEventIsTold(t *testing.T) {
	got := eventOf(fullEvent())
	want := Event{Position: 3, Kind: EventFreed, Part: Part{Key: "k", Mode: Shared, Tree: true},
		Hold: Hold{Holder: "holder", Session: "6", Token: 5, Value: "value", Labels: map[string]string{"l": "x"}},
		At:   time.UnixMilli(7000), Cause: OutcomeForced, By: "by", Reason: "reason", Data: []byte("data"), Revision: 9}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for i := range reflect.TypeFor[query.Event]().NumField() {
		field := reflect.TypeFor[query.Event]().Field(i)
		if !field.IsExported() {
			continue
		}
		e := fullEvent()
		reflect.ValueOf(e).Elem().Field(i).SetZero()
		if without := eventOf(e); reflect.DeepEqual(without, got) {
			t.Errorf("without %s the event is the same", field.Name)
		}
	}
	resumed := fullEvent()
	resumed.Cause, resumed.By = uint32(lockfsm.Resumed), replica.Record{Name: "former"}.Encode()
	if e := eventOf(resumed); e.By != "former" || e.Cause != OutcomeResumed {
		t.Errorf("%+v", e)
	}
}

// fullTrace returns an event of a lock whose fields are all set.
func fullTrace() trace.Event {
	return trace.Event{Asked: trace.Asked{Part: modes.Part{Key: "k", Mode: modes.Mode(Shared), Tree: true},
		Also: []Part{{Key: "l"}}, Purpose: "job"}, End: trace.Refused, Loss: client.LossForced, Err: ErrLeaving, Token: 3,
		Where: "where", Tag: "tag", Took: 4, Held: 5, Waiting: 6,
		Behind: &client.HeldError{Key: "k", Record: replica.Record{Name: "who"}.Encode(), Token: 7, Waiters: 8,
			Value: shown.Encode("v", nil, []byte("mark"))}}
}

// TestEachFieldOfALockEventIsTold compares a whole event, and checks that each field changes it.
func TestEachFieldOfALockEventIsTold(t *testing.T) {
	full := fullTrace()
	got := lockEvent(&full)
	want := LockEvent{Part: Part{Key: "k", Mode: Shared, Tree: true}, Also: []Part{{Key: "l"}}, Purpose: "job",
		Outcome: OutcomeLeaving, Err: ErrLeaving, Token: 3, Where: "where", Tag: "tag", Took: 4, Held: 5,
		Behind: heldError(full.Behind), BehindMark: []byte("mark"), Waiting: 6}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	for i := range reflect.TypeFor[trace.Event]().NumField() {
		e := fullTrace()
		if name := reflect.TypeFor[trace.Event]().Field(i).Name; name != "Loss" {
			reflect.ValueOf(&e).Elem().Field(i).SetZero()
			if reflect.DeepEqual(lockEvent(&e), want) {
				t.Errorf("without %s the event is the same", name)
			}
		}
	}
	forced := &client.ForcedError{By: "by", Reason: "why"}
	for end := trace.Granted; end <= trace.Leaked; end++ {
		e := fullTrace()
		e.End, e.Err = end, forced
		_, converted := errors.AsType[*ForcedError](lockEvent(&e).Err)
		if converted != (end == trace.Lost || end == trace.InDoubt) {
			t.Errorf("end %d: the error is that of Lock.Err: %v", end, converted)
		}
	}
}

// TestEachEndHasItsOutcome checks the outcome of each end and of each error of a refused request.
func TestEachEndHasItsOutcome(t *testing.T) {
	for end, want := range map[trace.End]Outcome{trace.Granted: "granted", trace.Entered: "entered",
		trace.Confirmed: "confirmed", trace.Soon: "soon", trace.Unconfirmed: "unconfirmed", trace.Detached: "detached",
		trace.Left: "left", trace.Gone: "lost", trace.Stopped: "closed", trace.InDoubt: "in_doubt",
		trace.Regained: "regained", trace.Leaked: "", trace.Lost: "forced", trace.Refused: "held"} {
		e := fullTrace()
		e.End, e.Err = end, ErrHeld
		if got := outcome(&e); got != want {
			t.Errorf("end %d: %q, want %q", end, got, want)
		}
	}
	for err, want := range map[error]Outcome{
		&DeadlockError{}: "deadlock", context.DeadlineExceeded: "timeout", context.Canceled: "canceled",
		&HeldError{Hold: Hold{Token: 1}}: "held", ErrQueueFull: "queue_full",
		ErrNotReady: "not_ready", ErrOverloaded: "overloaded",
		ErrLeaving: "leaving", ErrClosed: "closed", ErrBadRequest: "bad_request", ErrBadKey: "bad_request",
		ErrNotHeld: "not_held", ErrNoRoom: "no_room", ErrInJeopardy: "in_doubt", ErrNotAllowed: "failed",
		ErrLost: "failed", &HeldError{}: "failed",
	} {
		if got := refusal(fmt.Errorf("wrapped: %w", err)); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

// TestEachHookIsCalledAlone sets one hook after the other, and checks that it hears of its events,
// whole and with its context, and that no other one is set.
func TestEachHookIsCalledAlone(t *testing.T) {
	type contextKey struct{}
	ctx, full := context.WithValue(t.Context(), contextKey{}, 1), fullTrace()
	want := lockEvent(&full)
	var heard []LockEvent
	hears := func(c context.Context, e LockEvent) {
		if c != nil && c != ctx {
			t.Error("a hook gets another context")
		}
		heard = append(heard, e)
	}
	for name, c := range map[string]struct {
		hooks Hooks
		call  func(h *trace.Hooks)
	}{
		"Acquired": {Hooks{Acquired: func(c context.Context, e LockEvent) any { hears(c, e); return "tag" }},
			func(h *trace.Hooks) {
				if h.Acquired(ctx, full) != "tag" {
					t.Error("the tag is another one")
				}
			}},
		"Unlocked": {Hooks{Unlocked: hears}, func(h *trace.Hooks) { h.Unlocked(ctx, full) }},
		"Lost":     {Hooks{Lost: func(e LockEvent) { hears(nil, e) }}, func(h *trace.Hooks) { h.Lost(full) }},
		"InDoubt":  {Hooks{InDoubt: func(e LockEvent) { hears(nil, e) }}, func(h *trace.Hooks) { h.InDoubt(full) }},
		"Leaked":   {Hooks{Leaked: func(e LockEvent) { hears(nil, e) }}, func(h *trace.Hooks) { h.Leaked(full) }},
		"Mark": {Hooks{Mark: func(context.Context) []byte { hears(nil, want); return []byte("m") }}, func(h *trace.Hooks) {
			if string(h.Mark(ctx)) != "m" {
				t.Error("the mark is another one")
			}
		}},
	} {
		heard = nil
		got := lockHooks(&c.hooks)
		v := reflect.ValueOf(got.Hooks)
		for i := range v.NumField() {
			if set := !v.Field(i).IsNil(); set != (v.Type().Field(i).Name == name) {
				t.Errorf("with %s alone, %s is set: %v", name, v.Type().Field(i).Name, set)
			}
		}
		if c.call(&got.Hooks); !got.Queued || len(heard) != 1 || !reflect.DeepEqual(heard[0], want) {
			t.Errorf("%s: %+v", name, heard)
		}
	}
	var events []NodeEvent
	node := nodeHooks(&Hooks{Node: func(e NodeEvent) { events = append(events, e) }})
	node.Node(instance.NodeEvent{State: string(LeaderNew), Leader: "l", Session: "s", Term: 3, Took: 4, Left: 5})
	whole := NodeEvent{State: LeaderNew, Leader: "l", Session: "s", Term: 3, Took: 4, Left: 5}
	if node.Synced != nil || len(events) != 1 || events[0] != whole {
		t.Errorf("%+v", events)
	}
	var took time.Duration
	synced := nodeHooks(&Hooks{Synced: func(d time.Duration, err error) { took = d }})
	if synced.Synced(7, nil); synced.Node != nil || took != 7 {
		t.Errorf("%v", took)
	}
	if none := lockHooks(nil); none.Queued || nodeHooks(nil) != nil || !reflect.ValueOf(none.Hooks).IsZero() {
		t.Error("there are hooks without any")
	}
}

// TestWhatObserversAreAsked checks what a hook is told of each request.
func TestWhatObserversAreAsked(t *testing.T) {
	also := []Part{{Key: "l", Mode: Shared}}
	for i, c := range []struct {
		r    Request
		want trace.Asked
	}{
		{Request{Key: "k", Value: "v"}, trace.Asked{Part: modes.Part{Key: "k"}}},
		{Request{Key: "k", Mode: Shared, Tree: true, Also: also},
			trace.Asked{Part: modes.Part{Key: "k", Mode: modes.Mode(Shared), Tree: true}, Also: also}},
		{Request{Key: "k", Labels: map[string]string{shown.PurposeLabel: "job"}},
			trace.Asked{Part: modes.Part{Key: "k"}, Purpose: "job"}},
		{Request{Key: "k", Labels: map[string]string{shown.PurposeLabel: "fun"}}, trace.Asked{Part: modes.Part{Key: "k"}}},
	} {
		if got := (&demand{Request: c.r}).asked(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%d: %+v, want %+v", i, got, c.want)
		}
	}
}

// TestEachFieldOfARequestIsAsked sets each field of a request alone and all together, and compares
// the whole request of the session, and what it would be granted.
func TestEachFieldOfARequestIsAsked(t *testing.T) {
	under := &client.Request{Key: "outer"}
	labels := map[string]string{"l": "x"}
	empty := shown.Encode("", nil, nil)
	x, s := lockfsm.ModeX, lockfsm.ModeIS
	for i, c := range []struct {
		d      demand
		under  *client.Request
		want   client.Request
		wants  lockfsm.Grant
		string string
	}{
		{demand{Request: Request{Key: "k"}}, nil, client.Request{Key: "k"}, lockfsm.Grant{Key: "k"}, `lock "k"`},
		{demand{Request: Request{Key: "k", Try: true}}, nil, client.Request{Key: "k", Try: true}, lockfsm.Grant{Key: "k"},
			`lock "k"`},
		{demand{Request: Request{Key: "k"}}, under, client.Request{Key: "k",
			Terms: &client.Terms{Value: empty, Under: under}},
			lockfsm.Grant{Key: "k"}, `lock "k"`},
		{demand{Request: Request{Key: "k"}, resume: 7}, nil, client.Request{Key: "k", Terms: &client.Terms{Value: empty,
			Resume: 7}}, lockfsm.Grant{Key: "k"}, `resume "k" by token 7`},
		{demand{Request: Request{Key: "k", MaxWaiting: 3}}, nil, client.Request{Key: "k", Terms: &client.Terms{Value: empty,
			Most: 3}}, lockfsm.Grant{Key: "k"}, `lock "k"`},
		{demand{Request: Request{Key: "k", MaxHold: 3}}, nil, client.Request{Key: "k", Terms: &client.Terms{Value: empty,
			Longest: 3}}, lockfsm.Grant{Key: "k"}, `lock "k"`},
		{demand{Request: Request{Key: "k", MaxIdle: 3}}, nil, client.Request{Key: "k", Terms: &client.Terms{Value: empty,
			Idle: 3}}, lockfsm.Grant{Key: "k"}, `lock "k"`},
		{demand{Request: Request{Key: "k", JeopardyGrace: 3}}, nil, client.Request{Key: "k",
			Terms: &client.Terms{Value: empty, Grace: 3}}, lockfsm.Grant{Key: "k"}, `lock "k"`},
		{demand{Request: Request{Key: "k", LockDelay: 1600 * time.Microsecond}}, nil, client.Request{Key: "k",
			Terms: &client.Terms{Value: empty, Delay: 2 * time.Millisecond}}, lockfsm.Grant{Key: "k"}, `lock "k"`},
		{demand{Request: Request{Key: "k", Notice: true}}, nil, client.Request{Key: "k", Terms: &client.Terms{Value: empty,
			Notice: true}}, lockfsm.Grant{Key: "k"}, `lock "k"`},
		{demand{Request: Request{Key: "k", Value: "v"}}, nil, client.Request{Key: "k", Terms: &client.Terms{
			Value: shown.Encode("v", nil, nil)}}, lockfsm.Grant{Key: "k"}, `lock "k"`},
		{demand{Request: Request{Key: "k", Labels: labels}}, nil, client.Request{Key: "k", Terms: &client.Terms{
			Value: shown.Encode("", labels, nil)}}, lockfsm.Grant{Key: "k"}, `lock "k"`},
		{demand{Request: Request{Key: "k", Mode: Shared}}, nil, client.Request{Key: "k", Terms: &client.Terms{Value: empty,
			Permits: 1}}, lockfsm.Grant{Key: "k", Permits: 1}, `lock "k"`},
		{demand{Request: Request{Key: "k", Mode: Permits(2, 5)}}, nil, client.Request{Key: "k", Terms: &client.Terms{
			Value: empty, Permits: 2, Of: 5}}, lockfsm.Grant{}, `lock "k"`},
		{demand{Request: Request{Key: "k", Mode: Upgradable}}, nil, client.Request{Key: "k", Terms: &client.Terms{
			Value: empty, Keys: []string{}, Modes: []lockfsm.Mode{lockfsm.ModeU}}}, lockfsm.Grant{Key: "k", Keys: []string{},
			Modes: []lockfsm.Mode{lockfsm.ModeU}}, `lock "k"`},
		{demand{Request: Request{Key: "k", Also: []Part{{Key: "b", Mode: Shared}}}}, nil, client.Request{Key: "b",
			Terms: &client.Terms{Value: empty, Keys: []string{"k"}, Modes: []lockfsm.Mode{s, x}}},
			lockfsm.Grant{Key: "b", Keys: []string{"k"}, Modes: []lockfsm.Mode{s, x}}, `lock ["k" "b"]`},
		{demand{Request: Request{Key: "a/b", Tree: true}}, nil, client.Request{Key: "a", Terms: &client.Terms{Value: empty,
			Keys: []string{"a/b"}, Modes: []lockfsm.Mode{lockfsm.ModeIX, x}}}, lockfsm.Grant{Key: "a", Keys: []string{"a/b"},
			Modes: []lockfsm.Mode{lockfsm.ModeIX, x}}, `lock "a/b"`},
	} {
		var got client.Request
		c.d.ask(&got, c.under)
		wants := c.d.wants()
		for _, keys := range []*[]string{&wants.Keys, &c.wants.Keys} {
			if len(*keys) == 0 {
				*keys = nil
			}
		}
		for _, r := range []*client.Request{&got, &c.want} {
			if r.Terms != nil && len(r.Terms.Keys) == 0 {
				r.Terms.Keys = nil
			}
		}
		if !reflect.DeepEqual(got, c.want) || !reflect.DeepEqual(wants, c.wants) || c.d.String() != c.string {
			t.Errorf("%d: asks for %+v with %+v, wants %+v, %s\nwant %+v with %+v and %+v", i, got, got.Terms, wants,
				c.d.String(), c.want, c.want.Terms, c.wants)
		}
		ordinary := c.want.Terms == nil || c.under != nil || c.d.resume != 0
		if c.d.ordinary() != ordinary {
			t.Errorf("%d: ordinary is %v", i, !ordinary)
		}
	}
}

// TestWhatARequestReads checks which requests are of readers, of trees and of permits.
func TestWhatARequestReads(t *testing.T) {
	reader, writer, tree := Part{Key: "l", Mode: Shared}, Part{Key: "m"}, Part{Key: "n", Mode: Shared, Tree: true}
	for i, c := range []struct {
		r                     Request
		reads, trees, permits bool
	}{
		{Request{Key: "k"}, false, false, false},
		{Request{Key: "k", Mode: Shared}, true, false, false},
		{Request{Key: "k", Mode: Upgradable}, false, false, false},
		{Request{Key: "k", Mode: Permits(1, 2)}, false, false, true},
		{Request{Key: "k", Mode: Shared, Also: []Part{reader}}, true, false, false},
		{Request{Key: "k", Mode: Shared, Also: []Part{reader, writer}}, false, false, false},
		{Request{Key: "k", Also: []Part{reader}}, false, false, false},
		{Request{Key: "k", Tree: true}, false, true, false},
		{Request{Key: "k", Mode: Shared, Also: []Part{reader, tree}}, true, true, false},
	} {
		if c.r.reads() != c.reads || c.r.trees() != c.trees || c.r.permits() != c.permits {
			t.Errorf("%d: reads %v, trees %v, permits %v", i, c.r.reads(), c.r.trees(), c.r.permits())
		}
	}
}

// TestTheLifeOfALockIsTold compares all calls of hooks in the life of a lock: how it was acquired,
// entered and refused, how each of its handles ended, and why it was lost.
func TestTheLifeOfALockIsTold(t *testing.T) {
	var mu sync.Mutex
	var told []string
	note := func(hook string) func(e LockEvent) {
		return func(e LockEvent) {
			mu.Lock()
			defer mu.Unlock()
			line := fmt.Sprintf("%s %s %s", hook, e.Key, e.Outcome)
			if e.Tag != nil {
				line += fmt.Sprint(" tag ", e.Tag)
			}
			if e.Err != nil {
				line += " with an error"
			}
			if (e.Token != 0) != (e.Tag != nil || hook == "acquired" && e.Err == nil) {
				line += fmt.Sprint(" with token ", e.Token)
			}
			told = append(told, line)
		}
	}
	taken := func(least int) []string {
		for range 5000 { // Hooks.Lost has a goroutine of its own
			mu.Lock()
			if len(told) >= least {
				break
			}
			mu.Unlock()
			time.Sleep(time.Millisecond)
		}
		defer mu.Unlock()
		all := told
		told = nil
		return all
	}
	n, ctx := alone(t, Config{Hooks: &Hooks{
		Acquired: func(_ context.Context, e LockEvent) any { note("acquired")(e); return e.Outcome },
		Unlocked: func(_ context.Context, e LockEvent) { note("unlocked")(e) },
		Lost:     note("lost"), InDoubt: note("doubt"),
	}}), t.Context()
	get := func(ctx context.Context, r Request) *Lock {
		t.Helper()
		l, err := n.Acquire(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for what, c := range map[string]struct {
		do   func() error
		want []string
	}{
		"Unlock, twice": {func() error {
			l := get(ctx, Request{Key: "k"})
			return errors.Join(l.Unlock(ctx), l.Unlock(ctx))
		}, []string{"acquired k granted", "unlocked k confirmed tag granted"}},
		"UnlockSoon": {func() error { return get(ctx, Request{Key: "k"}).UnlockSoon() },
			[]string{"acquired k granted", "unlocked k soon tag granted"}},
		"Detach": {func() error { return get(ctx, Request{Key: "k"}).Detach(ctx) },
			[]string{"acquired k granted", "unlocked k detached tag granted"}},
		"two handles": {func() error {
			l := get(ctx, Request{Key: "k"})
			again := get(l.Context(ctx), Request{Key: "k"})
			return errors.Join(l.Unlock(ctx), again.Unlock(ctx))
		}, []string{"acquired k granted", "acquired k entered tag granted", "unlocked k left tag granted",
			"unlocked k confirmed tag granted"}},
		"a Try of a held lock": {func() error {
			l := get(ctx, Request{Key: "k"})
			if _, err := n.TryLock(ctx, "k"); !errors.Is(err, ErrHeld) {
				return err
			}
			return l.Unlock(ctx)
		}, []string{"acquired k granted", "acquired k held with an error", "unlocked k confirmed tag granted"}},
		"an upgrade": {func() error {
			l := get(ctx, Request{Key: "k", Mode: Upgradable})
			up, err := l.Upgrade(ctx)
			if err != nil {
				return err
			}
			if _, err := l.Upgrade(ctx); !errors.Is(err, ErrBadRequest) {
				return err
			}
			return errors.Join(up.Unlock(ctx), l.Unlock(ctx))
		}, []string{"acquired k granted", "acquired k granted", "acquired k bad_request with an error",
			"unlocked k confirmed tag granted",
			"unlocked k confirmed tag granted"}},
		"a key that is none": {func() error {
			if _, err := n.Lock(ctx, ""); !errors.Is(err, ErrBadKey) {
				return err
			}
			return nil
		}, []string{"acquired  bad_request with an error"}},
		"ForceUnlock": {func() error {
			l := get(ctx, Request{Key: "k"})
			_, err := n.ForceUnlock(ctx, "k", l.Token(), "why")
			<-l.Done()
			if unlock := l.Unlock(ctx); !errors.Is(unlock, ErrLost) {
				return unlock
			}
			return err
		}, []string{"acquired k granted", "lost k forced tag granted with an error",
			"unlocked k lost tag granted with an error"}},
	} {
		err := c.do()
		got := taken(len(c.want))
		slices.Sort(got)
		slices.Sort(c.want)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v\n%q\nwant\n%q", what, err, got, c.want)
		}
	}
}
