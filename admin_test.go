package mortise

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// asGuest returns a client of the admin service of n under a derived secret with one right.
func asGuest(t testing.TB, n *Node) (query.AdminClient, *way) {
	t.Helper()
	rights, err := capability.Build("g", time.Time{}, "lock a")
	if err != nil {
		t.Fatal(err)
	}
	kept := &way{}
	services := transport.Services{
		List:      []transport.Service{{Desc: &query.Admin_ServiceDesc, Impl: admin{n: n, way: kept}}},
		Intercept: (&queries.Guard{Started: func() bool { return true }}).Intercept,
	}
	return query.NewAdminClient(services.As(transport.Identity{
		Peer: capability.Peer{Tier: capability.Guest, Capability: rights}})), kept
}

// TestAStatusIsNotMadeForEachGuest checks that a program without the right to read all makes the
// instance build and encode at most one status for each interval.
func TestAStatusIsNotMadeForEachGuest(t *testing.T) {
	n := alone(t, Config{})
	guest, kept := asGuest(t, n)
	ask := func() (s Status) {
		t.Helper()
		a, err := guest.Here(t.Context(), &query.HereRequest{})
		if err == nil {
			err = json.Unmarshal(a.Status, &s)
		}
		if err != nil || a.Denied == nil {
			t.Fatal(a, err)
		}
		return s
	}
	if s := ask(); s.Instance != n.Status().Instance || s.Session != "" {
		t.Errorf("a guest sees %+v", s)
	}
	kept.made = time.Now().Add(time.Hour) // no question is a whole interval later
	var err error
	if kept.text, err = json.Marshal(Status{Member: Member{Name: "kept"}}); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if s := ask(); s.Name != "kept" {
			t.Fatalf("a status was made anew: %+v", s)
		}
	}
	kept.made = time.Now().Add(-wayKept)
	if s := ask(); s.Instance != n.Status().Instance {
		t.Errorf("a guest sees an old status: %+v", s)
	}
}

func BenchmarkHereOfAGuest(b *testing.B) {
	n, err := Start(b.Context(), Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer n.Close()
	guest, kept := asGuest(b, n)
	for name, fresh := range map[string]bool{"kept": false, "made": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if fresh {
					kept.text = nil
				}
				if _, err := guest.Here(b.Context(), &query.HereRequest{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// asProgram returns a client of the admin service of n under the root secret.
func asProgram(n *Node) query.AdminClient {
	services := transport.Services{
		List:      []transport.Service{{Desc: &query.Admin_ServiceDesc, Impl: admin{n: n, way: &way{}}}},
		Intercept: (&queries.Guard{Started: func() bool { return true }, Translate: failed}).Intercept,
	}
	return query.NewAdminClient(services.As(transport.Identity{Peer: capability.Peer{Tier: capability.Root}}))
}

// told decodes an answer of the admin service.
func told[T any](t *testing.T, text []byte, err error) (v T) {
	t.Helper()
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// asJSON returns v as a program gets it.
func asJSON[T any](t *testing.T, v T) T {
	t.Helper()
	b, err := json.Marshal(v)
	return told[T](t, b, err)
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v\nwant %+v", what, got, want)
	}
}

// TestProgramsGetTheAnswersOfTheNode asks each question of a program, and compares the answer with
// that of the node's own method. A new method needs a row.
func TestProgramsGetTheAnswersOfTheNode(t *testing.T) {
	n, ctx := alone(t, Config{Name: "n", Zone: "z", SessionTTL: time.Minute}), t.Context()
	c := asProgram(n)
	l, err := n.Acquire(ctx, Request{Key: "k", Value: "v", Labels: map[string]string{"l": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Put(ctx, "data", []byte("d"), 0); err != nil {
		t.Fatal(err)
	}
	timeless := func(all []KeyInfo) []KeyInfo {
		for i := range all {
			for j := range all[i].Queue {
				all[i].Queue[j].Left = 0
			}
		}
		return all
	}
	listed := func(prefix string) (all []KeyInfo) {
		for info, err := range n.List(ctx, prefix) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, info)
		}
		return all
	}
	var member Member
	for m, err := range n.Members(ctx, "") {
		if member = m; err != nil {
			t.Fatal(err)
		}
	}
	rows := map[string]func(){
		"Here": func() {
			a, err := c.Here(ctx, &query.HereRequest{})
			s, own := told[Status](t, a.GetStatus(), err), n.Status()
			same(t, "Here", []any{s.Member, s.Group, s.Leader, s.Held, a.Failed, a.Denied == nil, a.Durable, a.Replicas,
				a.Founders == nil, a.SessionTtl, a.Leaderless, s.Health == nil}, []any{own.Member, own.Group, own.Leader, 1, "",
				true, false, uint32(0), true, int64(time.Minute), int64(0), true})
			if now := time.Now().UnixMilli(); a.WallUnixMs > now || a.WallUnixMs < now-60_000 {
				t.Errorf("the time is %d", a.WallUnixMs)
			}
		},
		"Health": func() {
			before, err := n.Health(ctx)
			a, err1 := c.Health(ctx, &query.StateRequest{})
			want, err2 := n.Health(ctx)
			// the leader evaluates the settings once a second
			for err == nil && !reflect.DeepEqual(asJSON(t, before), asJSON(t, want)) {
				before = want
				a, err1 = c.Health(ctx, &query.StateRequest{})
				want, err2 = n.Health(ctx)
			}
			same(t, "Health", told[Health](t, a.GetHealth(), errors.Join(err, err1, err2)), asJSON(t, want))
			if want.Members != 1 || want.Leader != "n" {
				t.Errorf("%+v", want)
			}
		},
		"List": func() {
			a, err := c.List(ctx, &query.ListRequest{Prefix: []byte("k")})
			want := listed("k")
			same(t, "List", timeless(told[[]KeyInfo](t, a.GetKeys(), err)), timeless(asJSON(t, want)))
			if len(want) != 1 || len(listed("")) != 2 || a.More || want[0].Held != 1 || want[0].Queue[0].Value != "v" {
				t.Errorf("%+v", want)
			}
		},
		"Peek": func() {
			a, err := c.Peek(ctx, &query.KeyRequest{Key: []byte("data")})
			want, err2 := n.Peek(ctx, "data")
			same(t, "Peek", told[[]KeyInfo](t, a.GetKeys(), errors.Join(err, err2)), asJSON(t, []KeyInfo{want}))
			if string(want.Data) != "d" || want.Revision == 0 {
				t.Errorf("%+v", want)
			}
			none, err := n.Peek(ctx, "none")
			if same(t, "Peek", none, KeyInfo{Key: "none"}); err != nil {
				t.Error(err)
			}
		},
		"Check": func() {
			for token, want := range map[Token]bool{l.Token(): true, l.Token() + 1: false} {
				a, err := c.Check(ctx, &query.HoldRequest{Key: []byte("k"), Token: uint64(token)})
				held, err2 := n.Check(ctx, "k", token)
				if err := errors.Join(err, err2); err != nil || a.Held != want || held != want {
					t.Errorf("Check of %d: %v and %v, %v", token, a.GetHeld(), held, err)
				}
			}
		},
		"Members": func() {
			a, err := c.Members(ctx, &query.PageRequest{})
			same(t, "Members", told[[]Member](t, a.GetMembers(), err), asJSON(t, []Member{member}))
			if a.More || a.Total != 1 || member.Name != "n" || member.Address != "" || !member.Votes || member.Zone != "z" {
				t.Errorf("%v, %+v", a, member)
			}
		},
		"Sessions": func() {
			a, err := c.Sessions(ctx, &query.PageRequest{})
			all, err2 := n.Sessions(ctx)
			got := told[[]SessionInfo](t, a.GetSessions(), errors.Join(err, err2))
			if len(got) != 1 || len(all) != 1 || got[0].Left <= 0 || all[0].Left <= 0 || a.More {
				t.Fatalf("%+v and %+v", got, all)
			}
			got[0].Left, all[0].Left = 0, 0
			same(t, "Sessions", got, asJSON(t, all))
			if all[0].Held != 1 || all[0].TTL != time.Minute || all[0].Session != n.Status().Session {
				t.Errorf("%+v", all)
			}
		},
		"Watch": func() {
			a, err := c.Watch(ctx, &query.WatchRequest{Prefixes: [][]byte{[]byte("k")}})
			events := told[[]Event](t, a.GetEvents(), err)
			if len(events) != 3 || events[0].Kind != EventReset || events[1].Key != "k" || events[1].Token != l.Token() ||
				events[2].Kind != EventCurrent || a.Position == 0 || events[2].Position != a.Position {
				t.Errorf("at the beginning: %+v", events)
			}
			all, err := c.Watch(ctx, &query.WatchRequest{})
			if events := told[[]Event](t, all.GetEvents(), err); len(events) != 4 {
				t.Errorf("all keys: %+v", events)
			}
			revision, err := n.Put(ctx, "k2", []byte("x"), 0)
			if err != nil {
				t.Fatal(err)
			}
			later, err := c.Watch(ctx, &query.WatchRequest{Prefixes: [][]byte{[]byte("k")}, After: a.Position})
			events = told[[]Event](t, later.GetEvents(), err)
			if len(events) != 1 || events[0].Kind != EventData || events[0].Revision != revision || later.Missed ||
				later.Position != a.Position+1 || events[0].Position != later.Position {
				t.Errorf("after %d: %+v, %v", a.Position, events, later)
			}
			if _, err := c.Watch(ctx, &query.WatchRequest{Prefixes: make([][]byte, 2)}); err == nil {
				t.Error("a program watches two prefixes")
			}
		},
		"Put": func() {
			put := func(data string, revision, token uint64) (*query.PutAnswer, error) {
				return c.Put(ctx, &query.PutRequest{Key: []byte("p"), Data: []byte(data), Revision: revision, Nonce: n.nonce(),
					Lock: []byte("k"), Token: token})
			}
			a, err := put("one", 0, uint64(l.Token()))
			data, revision, err2 := n.Get(ctx, "p")
			if err := errors.Join(err, err2); err != nil || a.Revision != revision || string(data) != "one" || a.Code != 0 {
				t.Errorf("Put: %v, %q at %d, %v", a, data, revision, err)
			}
			if a, err := put("two", revision, 1); err != nil || lockfsm.Code(a.Code) != lockfsm.NotHeld || a.Revision != 0 {
				t.Errorf("Put without the hold: %v, %v", a, err)
			}
			if _, err := put("two", revision+9, 0); err == nil {
				t.Error("Put at another revision")
			}
		},
		"SetValue": func() {
			a, err := c.SetValue(ctx, &query.ValueRequest{Key: []byte("k"), Token: 1, Seq: 1, Value: []byte("w")})
			if err != nil || lockfsm.Code(a.Code) != lockfsm.NotHeld {
				t.Errorf("SetValue of another hold: %v, %v", a, err)
			}
		},
		"Recover": func() {
			if _, err := c.Recover(ctx, &query.RecoverRequest{Group: "0000000000000009"}); err == nil || n.Err() != nil {
				t.Errorf("Recover of another group: %v, %v", err, n.Err())
			}
		},
		"Evict": func() {
			q := &query.EvictRequest{Key: []byte("k"), Token: uint64(l.Token()), By: []byte("me"), Reason: []byte("why")}
			bad := &query.EvictRequest{Key: []byte("k"), Token: uint64(l.Token())}
			if _, err := c.Evict(ctx, bad); err == nil || l.Err() != nil {
				t.Errorf("Evict without a name: %v, %v", err, l.Err())
			}
			for _, want := range []bool{true, false} {
				if a, err := c.Evict(ctx, q); err != nil || a.Held != want {
					t.Errorf("Evict: %v, %v", a, err)
				}
			}
			<-l.Done()
			forced, is := errors.AsType[*ForcedError](l.Err())
			if !is || forced.Reason != "why" || !strings.HasPrefix(forced.By, "me") || forced.Resumed {
				t.Errorf("%+v", l.Err())
			}
		},
		"EndSession": func() {
			q := &query.EndSessionRequest{Session: 1, By: []byte("me"), Reason: []byte("why")}
			if _, err := c.EndSession(ctx, &query.EndSessionRequest{Session: 1}); err == nil {
				t.Error("EndSession without a name")
			}
			if a, err := c.EndSession(ctx, q); err != nil || a.Held {
				t.Errorf("EndSession of none: %v, %v", a, err)
			}
		},
		"TransferLead": func() {
			ask := func(name string) (*query.TransferLeadAnswer, error) {
				return queries.Ask(ctx, c, query.AdminClient.TransferLead, &query.TransferLeadRequest{Name: []byte(name),
					By: []byte("me"), Reason: []byte("why")})
			}
			for name, want := range map[string]string{"": "is no name of an instance", "x": "has the name \"x\""} {
				if _, err := ask(name); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("TransferLead to %q: %v", name, err)
				}
			}
			own := n.Status().Name
			if a, err := ask(own); err != nil || string(a.From) != own || voters.Refusal(a.Refusal) != voters.LeadsNow {
				t.Errorf("TransferLead to the leader: %v, %v", a, err)
			}
		},
		"Audit": func() {
			a, err := c.Audit(ctx, &query.StateRequest{})
			want, err2 := n.Audit(ctx)
			same(t, "Audit", told[[]Event](t, a.GetEvents(), errors.Join(err, err2)), asJSON(t, want))
			if len(want) != 1 || want[0].Cause != OutcomeForced || want[0].Reason != "why" {
				t.Errorf("%+v", want)
			}
		},
	}
	last := []string{"Watch", "Put", "SetValue", "Recover", "Evict", "Audit"} // in this order
	var methods []string
	for _, m := range query.Admin_ServiceDesc.Methods {
		if !slices.Contains(last, m.MethodName) {
			methods = append(methods, m.MethodName)
		}
	}
	for _, m := range append(methods, last...) {
		if rows[m] == nil {
			t.Errorf("%s has no row", m)
			continue
		}
		rows[m]()
	}
}

// TestEachAnswerToAPut checks the result of a Put in each case that one node can bring about.
func TestEachAnswerToAPut(t *testing.T) {
	n, ctx := alone(t, Config{}), t.Context()
	put := func(key, data string, revision uint64, want error) uint64 {
		t.Helper()
		got, err := n.Put(ctx, key, []byte(data), revision)
		if !errors.Is(err, want) || want != nil && got != 0 {
			t.Errorf("Put of %q at %d: %d, %v, want %v", data, revision, got, err, want)
		}
		return got
	}
	one := put("k", "one", 0, nil)
	put("k", "two", 0, ErrConflict)
	put("k", "", 0, ErrConflict)
	put("k", strings.Repeat("x", lockfsm.MaxDataBytes+1), one, ErrBadRequest)
	put("", "x", 0, ErrBadKey)
	put("k\n", "x", 0, ErrBadKey)
	two := put("k", strings.Repeat("x", lockfsm.MaxDataBytes), one, nil)
	if put("k", "", two, nil) != 0 || put("k", "", two, nil) != 0 || two <= one {
		t.Errorf("revisions %d and %d", one, two)
	}
	put("k", "x", two, ErrConflict)
	if data, revision, err := n.Get(ctx, "k"); err != nil || data != nil || revision != 0 {
		t.Errorf("no data is %q at %d, %v", data, revision, err)
	}
	for what, nonce := range map[string][]byte{"no nonce": nil, "a zero nonce": make([]byte, 16),
		"a long nonce": make([]byte, 17)} {
		if _, err := n.put(ctx, &query.PutRequest{Key: []byte("k"), Nonce: nonce}); !errors.Is(err, ErrBadRequest) {
			t.Errorf("%s: %v", what, err)
		}
	}
	l, err := n.Lock(ctx, "l")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Put(ctx, "m", []byte("x"), 0); err != nil {
		t.Error(err)
	}
	if err := l.SetValue(ctx, strings.Repeat("x", lockfsm.MaxValueBytes)); err != nil {
		t.Error(err)
	}
	if err := l.SetValue(ctx, strings.Repeat("x", lockfsm.MaxValueBytes+1)); !errors.Is(err, ErrBadRequest) {
		t.Error(err)
	}
	if ended, err := n.ForceUnlock(ctx, "l", l.Token(), "why"); !ended || err != nil {
		t.Error(ended, err)
	}
	_, err = n.put(ctx, &query.PutRequest{Key: []byte("o"), Nonce: n.nonce(), Lock: []byte("l"), Token: uint64(l.Token())})
	if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), `put "o": the group has no hold of "l" with token`) {
		t.Errorf("a Put under a hold that has ended: %v", err)
	}
	<-l.Done()
	_, err = l.Put(ctx, "m", nil, 0)
	for _, refused := range []error{l.SetValue(ctx, "x"), err} {
		if !errors.Is(refused, ErrLost) {
			t.Errorf("under a lock that has ended: %v", refused)
		}
	}
	sticky, err := n.LockSticky(ctx, "s", StickyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = sticky.Put(ctx, "m", nil, 0)
	if !errors.Is(err, ErrBadRequest) || !errors.Is(sticky.SetValue(ctx, "x"), ErrBadRequest) {
		t.Errorf("under a sticky lock: %v", err)
	}
	for count, ok := range map[int]bool{0: false, 1: true, lockfsm.MaxReserved: true, lockfsm.MaxReserved + 1: false,
		-1: false} {
		first, err := n.IDs(ctx, count)
		if (err == nil) != ok || ok == (first == 0) || !ok && !errors.Is(err, ErrBadRequest) {
			t.Errorf("%d IDs: %d, %v", count, first, err)
		}
	}
	one, _ = n.IDs(ctx, 5)
	if two, err := n.IDs(ctx, 1); err != nil || two < one+5 {
		t.Errorf("5 IDs from %d on, then %d, %v", one, two, err)
	}
}

// TestMembersBeginBehindASession pages through the members, behind each kind of text.
func TestMembersBeginBehindASession(t *testing.T) {
	n, ctx := alone(t, Config{}), t.Context()
	if err := n.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	for after, want := range map[string]int{"": 1, "1": 1, n.Status().Session: 0, "9223372036854775807": 0} {
		count := 0
		for _, err := range n.Members(ctx, after) {
			if count++; err != nil {
				t.Error(err)
			}
		}
		if count != want {
			t.Errorf("behind %q: %d members, want %d", after, count, want)
		}
	}
	for range n.Members(ctx, "") {
		break
	}
	for m, err := range n.Members(ctx, "x") {
		if !errors.Is(err, ErrBadRequest) || m != (Member{}) {
			t.Errorf("behind no session: %+v, %v", m, err)
		}
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	for m, err := range n.Members(over, "") {
		if !errors.Is(err, context.Canceled) || m != (Member{}) {
			t.Errorf("after the end of its context: %+v, %v", m, err)
		}
	}
	if at, err := cursorBehind("7"); err != nil || at.At != 7 || at.Past != 7 {
		t.Errorf("%v, %v", at, err)
	}

}

// TestEveryRefusalOfALeadIsAnError checks that only two answers of the leader mean that the
// instance leads, also if the leader has a newer build.
func TestEveryRefusalOfALeadIsAnError(t *testing.T) {
	for why := range voters.Refusal(300) {
		err := notMoved(why, "b-1")
		switch {
		case why == voters.Fit || why == voters.LeadsNow:
			if err != nil {
				t.Errorf("refusal %d: %v", why, err)
			}
		case !errors.Is(err, ErrBadRequest) && !errors.Is(err, ErrNotReady), !strings.Contains(err.Error(), `"b-1"`):
			t.Errorf("refusal %d: %v", why, err)
		case why > voters.NotTaken && !strings.Contains(err.Error(), "newer build"):
			t.Errorf("unknown refusal %d: %v", why, err)
		}
	}
}

// TestProgramsAskOnlyWhatCanBeAnswered makes changes and a watch that the group or the leader would
// refuse as malformed, so that they would be repeated until their time is over. A node without an
// engine shows that nothing is asked.
func TestProgramsAskOnlyWhatCanBeAnswered(t *testing.T) {
	const none = 1 << 63 // no token and no revision
	long, nonce := make([]byte, lockfsm.MaxValueBytes+1), make([]byte, len(lockfsm.Nonce{}))
	nonce[0] = 1
	a := admin{n: &Node{}}
	put := func(q *query.PutRequest) error {
		q.Key, q.Nonce = []byte("k"), nonce
		_, err := a.n.put(t.Context(), q)
		return err
	}
	value := func(q *query.ValueRequest) error {
		_, err := a.SetValue(t.Context(), q)
		return err
	}
	watch := func(after uint64) error {
		_, err := a.Watch(t.Context(), &query.WatchRequest{Prefixes: [][]byte{long}, After: after})
		return err
	}
	for what, c := range map[string]struct{ err, want error }{
		"a put at a revision":      {put(&query.PutRequest{Revision: none}), ErrConflict},
		"a put under a token":      {put(&query.PutRequest{Token: none, Lock: []byte("l")}), ErrLost},
		"a value of a token":       {value(&query.ValueRequest{Token: none}), ErrBadRequest},
		"a value of no token":      {value(&query.ValueRequest{}), ErrBadRequest},
		"a long value":             {value(&query.ValueRequest{Token: 1, Value: long}), ErrBadRequest},
		"a watch of a long prefix": {watch(0), ErrBadRequest},
		"a watch that goes on":     {watch(1), ErrBadRequest},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v", what, c.err)
		}
	}
}
