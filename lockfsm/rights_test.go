package lockfsm

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
)

// opener is one session of TestRightsOfEachCommand, beside the holder of {a, b}.
type opener struct {
	name     string
	instance byte
	words    []string // nil means a full instance
	codes    [4]Code  // lock of a, lock of a and b, resumption by a, Evict by a
}

// TestRightsOfEachCommand has every kind of session touch a hold of two keys, whose session is
// alive or gone. A refused command leaves the hold as it was.
func TestRightsOfEachCommand(t *testing.T) {
	holder := []string{"lock *"}
	live := []opener{
		{"root", 9, nil, [4]Code{Waiting, Waiting, Granted, Done}},
		{"member", 9, []string{"member"}, [4]Code{Waiting, Waiting, NotForced, NotForced}},
		{"member with force on one", 9, []string{"member", "force a"}, [4]Code{Waiting, Waiting, NotForced, NotForced}},
		{"member with force", 9, []string{"member", "force *"}, [4]Code{Waiting, Waiting, Granted, Done}},
		{"a part", 9, []string{"lock a"}, [4]Code{Waiting, NotAllowed, NotAllowed, NotForced}},
		{"a part, may end all", 9, []string{"lock a", "read *", "force *"},
			[4]Code{Waiting, NotAllowed, NotAllowed, Done}},
		{"all keys", 9, []string{"lock a", "lock b"}, [4]Code{Waiting, Waiting, NotForced, NotForced}},
		{"force without read", 9, []string{"lock *", "force *"}, [4]Code{Waiting, Waiting, NotForced, NotForced}},
		{"may end one", 9, []string{"lock *", "read *", "force a"}, [4]Code{Waiting, Waiting, NotForced, NotForced}},
		{"may end all", 9, []string{"lock *", "read *", "force *"}, [4]Code{Waiting, Waiting, Granted, Done}},
		{"no key", 9, []string{"read *", "force *"}, [4]Code{NotAllowed, NotAllowed, NotAllowed, Done}},
		{"same secret, other instance", 9, holder, [4]Code{Waiting, Waiting, Granted, NotForced}},
		{"other secret, same instance", 1, []string{"lock a*", "lock b*"}, [4]Code{Waiting, Waiting, Granted, NotForced}},
		{"other secret, same instance, a part", 1, []string{"lock a*"},
			[4]Code{Waiting, NotAllowed, NotAllowed, NotForced}},
	}
	gone := map[string]Code{"member": Granted, "member with force on one": Granted, "all keys": Granted,
		"force without read": Granted, "may end one": Granted}
	for _, o := range live {
		for _, isGone := range []bool{false, true} {
			for i, want := range o.codes {
				if code, differs := gone[o.name]; differs && isGone && i == 2 {
					want = code
				}
				w := newWorld(t)
				s := w.openAs(guestOpen(Command{Nonce: Nonce{1}, Record: []byte("holder")}, 1, holder...))
				token := w.do(Command{Kind: Acquire, Session: s, Epoch: 1, Number: 1, Key: "a", Keys: []string{"b"},
					Delay: time.Hour}, Granted).Token
				mine := w.openAs(guestOpen(Command{Nonce: Nonce{2}, Record: []byte("other")}, o.instance, o.words...))
				if isGone {
					w.do(Command{Kind: Expire, Session: s, Term: 1}, Done)
				}
				c := Command{Kind: Acquire, Session: mine, Epoch: 1, Number: 1, Key: "a"}
				switch i {
				case 1:
					c.Keys = []string{"b"}
				case 2:
					c.Token = token
				case 3:
					c = Command{Kind: Evict, Key: "a", Token: token, Value: []byte("why")}
					if o.words != nil {
						c.Rights = rightsText(o.words...)
					}
				}
				r := w.m.Apply(1, 1, encode(t, c))
				if r.Code != want {
					t.Errorf("%s, gone %v, command %d: %v, want %v", o.name, isGone, i, r.Code, want)
				}
				if held := w.m.holds([]byte("b"), token) != nil; held != (want != Granted && want != Done) {
					t.Errorf("%s, gone %v, command %d: the hold is held: %v", o.name, isGone, i, held)
				}
				audited := len(w.m.Ends())
				if isGone {
					audited -= 2 // the expiry left two keys
				}
				wantAudited := 0
				if want == Done || want == Granted && !isGone {
					wantAudited = 2
				}
				if audited != wantAudited || want == Granted && r.Evicted.Live == isGone {
					t.Errorf("%s, gone %v, command %d: %d audit entries, %+v", o.name, isGone, i, audited, r.Evicted)
				}
				w.check()
				w.m = again(t, w.m)
			}
		}
	}
}

func (w *world) openAs(open Command) SessionID {
	w.t.Helper()
	id := w.do(open, Done).Session
	w.do(Command{Kind: Attach, Session: id, Epoch: 1, Number: 1, Nonce: open.Nonce}, Done)
	return id
}

// TestATakeOverIsAudited checks the entry, and that a session that resumes its own hold makes none.
func TestATakeOverIsAudited(t *testing.T) {
	w := newWorld(t)
	a, b := w.session(1), w.session(2)
	token := w.acquire(a, 1, "k", Granted).Token
	resume := func(s SessionID, n Number) Eviction {
		r := w.do(Command{Kind: Acquire, Session: s, Epoch: 1, Number: n, Key: "k", Token: token}, Granted)
		token = r.Token
		return *r.Evicted
	}
	if e := resume(a, 2); e.Live || len(w.m.Ends()) != 0 {
		t.Errorf("its own hold: %+v, %v", e, w.m.Ends())
	}
	was := token
	if e := resume(b, 1); !e.Live {
		t.Errorf("another's hold: %+v", e)
	}
	ends := w.m.Ends()
	if len(ends) != 1 || ends[0].Cause != Resumed || ends[0].What != Ended || ends[0].Token != was ||
		ends[0].Session != a || ends[0].How == nil || string(ends[0].How.By) != "\x02" {
		t.Fatalf("audited %+v", ends)
	}
	if again := again(t, w.m).Ends(); len(again) != 1 || string(again[0].How.By) != "\x02" {
		t.Errorf("restored: %+v", again)
	}
}

// TestRightsAreShared checks that sessions with the same rights share them, and that a machine
// forgets the rights of ended sessions.
func TestRightsAreShared(t *testing.T) {
	w := newWorld(t)
	var all []SessionID
	for i := range byte(6) {
		open := guestOpen(Command{Nonce: Nonce{1 + i}}, 1+i, []string{"lock a", "lock b"}[i/5])
		all = append(all, w.openAs(open))
	}
	of := func(m *Machine, i int) *sharedRights { return m.sessions.byID[all[i]].rights }
	for _, m := range []*Machine{w.m, again(t, w.m)} {
		if len(m.sessions.rights) != 2 || of(m, 0) != of(m, 4) || of(m, 0) == of(m, 5) || of(m, 0).sessions != 5 {
			t.Errorf("%d rights for two capabilities", len(m.sessions.rights))
		}
	}
	for _, id := range all {
		w.do(Command{Kind: Close, Session: id, Epoch: 1}, Done)
		w.check()
	}
	if len(w.m.sessions.rights) != 0 {
		t.Errorf("%d rights are left", len(w.m.sessions.rights))
	}
}

// TestRightsFailClosed checks that an Open with a capability and without its rights, or with a text
// that is none, opens no session.
func TestRightsFailClosed(t *testing.T) {
	w := newWorld(t)
	for _, c := range []Command{
		{Opener: Opener{Capability: [32]byte{1}}}, {Rights: "?"}, {Rights: "mortise-capability/1\nfor g\n"},
		{Rights: rightsText("lock a") + "lock b"}, {Rights: strings.Repeat("x", capability.MaxBytes+1)},
	} {
		c.Kind, c.Nonce = Open, Nonce{1}
		w.do(c, Malformed)
	}
	w.do(Command{Kind: Evict, Key: "a", Token: 1, Rights: "?"}, Malformed)
	if n := w.m.Counts().Sessions; n != 0 {
		t.Errorf("%d sessions", n)
	}
}

// TestARefusedRequestIsNotDeferred checks that a refusal is not taken for a request that waits.
func TestARefusedRequestIsNotDeferred(t *testing.T) {
	w := newWorld(t)
	root := w.session(1)
	guest := w.openAs(guestOpen(Command{Nonce: Nonce{2}}, 2, "lock a"))
	for i, key := range []string{"a", "b"} {
		w.acquire(root, Number(1+2*i), key, Granted)
		w.acquire(root, Number(2+2*i), key, Waiting)
		c := Command{Kind: Acquire, Session: guest, Epoch: 1, Number: 1, Key: key}
		if waits := w.m.OnlyWait(c.Append(nil), true); waits != (key == "a") {
			t.Errorf("%s: only waits: %v", key, waits)
		}
	}
}

// TestInvariantOfRights checks that Check sees an entry outside the rights of its session.
func TestInvariantOfRights(t *testing.T) {
	w := newWorld(t)
	guest := w.openAs(guestOpen(Command{Nonce: Nonce{2}}, 2, "lock a*"))
	w.acquire(guest, 1, "ab", Granted)
	other := w.m.sessions.rights.share(mustParse(t, rightsText("lock ac")))
	other.sessions--
	broken := func(change func(s *session)) bool {
		s := w.m.sessions.byID[guest]
		was := *s
		change(s)
		err := w.m.Check()
		*s = was
		return err != nil && strings.Contains(err.Error(), "invariant 22")
	}
	delete(w.m.sessions.rights, other.Text())
	for i, change := range []func(*session){
		func(s *session) { s.rights = other },
		func(s *session) { s.rights = nil },
		func(s *session) { s.opener.Capability[0]++ },
	} {
		if !broken(change) {
			t.Errorf("change %d is not seen", i)
		}
	}
	if err := w.m.Check(); err != nil {
		t.Error(err)
	}
}

func mustParse(t *testing.T, text string) *capability.Capability {
	t.Helper()
	c, err := capability.Parse(text)
	if err != nil {
		t.Fatal(errors.Join(err, errors.New(text)))
	}
	return c
}

// TestTheCostOfRights prints the time of the largest Acquire under the largest capability.
func TestTheCostOfRights(t *testing.T) {
	var words, keys []string
	for i := range capability.MaxLines - 2 {
		words = append(words, "lock "+strings.Repeat("d", 40)+string(rune('A'+i%26))+string(rune('a'+i/26))+"*")
	}
	for i := range MaxKeys {
		word := words[i%len(words)]
		keys = append(keys, strings.TrimSuffix(strings.TrimPrefix(word, "lock "), "*")+string(rune('a'+i/len(words))))
	}
	slices.Sort(keys)
	w := newWorld(t)
	s := w.openAs(guestOpen(Command{Nonce: Nonce{2}}, 2, words...))
	best := time.Hour
	for n := Number(1); n < 40; n += 2 {
		c := encode(t, Command{Kind: Acquire, Session: s, Epoch: 1, Number: n, Key: keys[0], Keys: keys[1:]})
		began := time.Now()
		if r := w.m.Apply(1, 1, c); r.Code != Granted {
			t.Fatal(r.Code)
		}
		best = min(best, time.Since(began))
		w.do(Command{Kind: Release, Session: s, Epoch: 1, Number: n}, Done)
	}
	t.Logf("%v for %d keys under %d rights", best, len(keys), len(words))
	if best > 5*time.Millisecond {
		t.Errorf("too slow")
	}
}
