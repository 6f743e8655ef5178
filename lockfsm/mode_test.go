package lockfsm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
)

// TestModesFit compares the rule of permits with the matrix of the comment of Mode, for each two
// modes in both orders.
func TestModesFit(t *testing.T) {
	compatible := map[[2]Mode]bool{
		{ModeIS, ModeIS}: true, {ModeIS, ModeIX}: true, {ModeIS, ModeS}: true,
		{ModeIX, ModeIX}: true, {ModeS, ModeS}: true, {ModeIS, ModeU}: true, {ModeS, ModeU}: true,
	}
	for a := ModeX; a <= ModeU; a++ {
		for b := ModeX; b <= ModeU; b++ {
			w := newWorld(t)
			want := Waiting
			if compatible[[2]Mode{a, b}] || compatible[[2]Mode{b, a}] {
				want = Granted
			}
			for n, mode := range []Mode{a, b} {
				w.do(Command{Kind: Acquire, Session: w.session(byte(n + 1)), Epoch: 1, Number: 1,
					Key: "k", Mode: mode}, []Code{Granted, want}[n])
			}
			w.check()
		}
	}
}

// TestPermitsDoNotWrap takes more permits than 32 bits can count.
func TestPermitsDoNotWrap(t *testing.T) {
	w := newWorld(t)
	s := w.session(1)
	for n, want := range []Code{Granted, Waiting, Waiting} {
		w.do(Command{Kind: Acquire, Session: s, Epoch: 1, Number: Number(n + 1), Key: "k",
			Mode: ModePermits, Permits: 1 << 31, Of: 1<<32 - 1}, want)
	}
	w.check()
}

// TestAnUpgradeWaitsForSubtrees upgrades beside the largest number of readers of subtrees.
func TestAnUpgradeWaitsForSubtrees(t *testing.T) {
	w := newWorld(t)
	s := w.session(1)
	acquire := func(n Number, c Command, want Code) {
		t.Helper()
		c.Kind, c.Session, c.Epoch, c.Number, c.Key = Acquire, s, 1, n, "k"
		w.do(c, want)
	}
	const beside = 16_383
	for n := range Number(beside) {
		acquire(n+1, Command{Mode: ModeS}, Granted)
	}
	acquire(beside+1, Command{Mode: ModeU}, Granted)
	acquire(beside+2, Command{Mode: ModeS}, Waiting)
	acquire(beside+3, Command{Upgrades: true, Owner: beside + 1}, Waiting)
	for n := range Number(beside - 1) {
		w.do(Command{Kind: Release, Session: s, Epoch: 1, Number: n + 1}, Done)
	}
	r := w.do(Command{Kind: Release, Session: s, Epoch: 1, Number: beside}, Done)
	if len(r.Fired) != 1 || r.Fired[0].Number != beside+3 || r.Fired[0].Token == 0 {
		t.Fatalf("after the last reader: %+v", r.Fired)
	}
	r = w.do(Command{Kind: Release, Session: s, Epoch: 1, Number: beside + 3}, Done)
	if len(r.Fired) != 1 || r.Fired[0].Number != beside+2 || r.Fired[0].Token == 0 {
		t.Fatalf("after the step back: %+v", r.Fired)
	}
	w.check()
}

// TestNoTryWaitsBesideAnUpgradableHold checks that a request with Try gets Held at once, although a
// stay is inside that it would otherwise ask.
func TestNoTryWaitsBesideAnUpgradableHold(t *testing.T) {
	w := newWorld(t)
	w.do(Command{Kind: Stamp, WallUnixMS: 1 << 42}, Done)
	a, b := w.session(1), w.session(2)
	do := func(s SessionID, n Number, c Command, want Code) Result {
		t.Helper()
		c.Kind, c.Session, c.Epoch, c.Number, c.Key = Acquire, s, 1, n, "k"
		return w.do(c, want)
	}
	do(b, 1, Command{Sticky: true, Mode: ModeIS}, Granted)
	do(a, 1, Command{Mode: ModeU}, Granted)
	do(b, 2, Command{Try: true}, Held)
	r := do(a, 2, Command{Upgrades: true, Owner: 1}, Waiting)
	if len(r.Fired) != 1 || r.Fired[0].Session != b || !r.Fired[0].Wanted {
		t.Fatalf("the stay is not asked to end: %+v", r.Fired)
	}
	do(b, 3, Command{Try: true}, Held)
	w.do(Command{Kind: Release, Session: b, Epoch: 1, Number: 1}, Done)
	do(b, 4, Command{Try: true}, Held)
	w.do(Command{Kind: Release, Session: a, Epoch: 1, Number: 2}, Done)
	do(b, 5, Command{Try: true, Mode: ModeIS}, Granted)
	w.check()
}

// TestAnUpgradeTellsOthersOnly checks that a request with Notice gets no notice about its own
// upgrade, but one about a request behind it.
func TestAnUpgradeTellsOthersOnly(t *testing.T) {
	w := newWorld(t)
	a, b := w.session(1), w.session(2)
	do := func(s SessionID, n Number, c Command, want Code) []Change {
		t.Helper()
		c.Kind, c.Session, c.Epoch, c.Number, c.Key = Acquire, s, 1, n, "k"
		r := keep(w.do(c, want))
		w.check()
		return r.Fired
	}
	do(a, 1, Command{Mode: ModeU, Notice: true}, Granted)
	do(b, 1, Command{Mode: ModeIS, Notice: true}, Granted)
	if f := do(a, 2, Command{Upgrades: true, Owner: 1, Notice: true}, Waiting); len(f) != 1 || f[0].Session != b {
		t.Fatalf("told of the upgrade: %+v", f)
	}
	w.do(Command{Kind: Release, Session: b, Epoch: 1, Number: 1}, Done)
	w.check()
	f := do(b, 2, Command{Mode: ModeIS}, Waiting)
	if len(f) != 2 || f[0].Number != 1 || f[1].Number != 2 || !f[0].Wanted || !f[1].Wanted {
		t.Fatalf("told of a reader behind the upgrade: %+v", f)
	}
}

// TestAnUpgradeGrantedAtOnceIsTold checks that an upgrade with Notice, which is granted at once
// before a request that waits, gets its notice then. Without Notice it gets none.
func TestAnUpgradeGrantedAtOnceIsTold(t *testing.T) {
	w := newWorld(t)
	a, b := w.session(1), w.session(2)
	for n, notice := range []bool{true, false} {
		key, number := string(rune('k'+n)), Number(2*n+1)
		do := func(s SessionID, n Number, c Command, want Code) []Change {
			c.Kind, c.Session, c.Epoch, c.Number, c.Key = Acquire, s, 1, n, key
			r := keep(w.do(c, want))
			w.check()
			return r.Fired
		}
		do(a, number, Command{Mode: ModeU, Notice: notice}, Granted)
		do(b, number, Command{}, Waiting)
		f := do(a, number+1, Command{Upgrades: true, Owner: number, Notice: notice}, Granted)
		f = slices.DeleteFunc(f, func(c Change) bool { return c.Session == b }) // it has a new predecessor
		if notice != (len(f) == 1 && f[0].Number == number+1 && f[0].Wanted) || !notice && len(f) > 0 {
			t.Errorf("with notice %v the upgrade is told %+v", notice, f)
		}
	}
}

// TestModesAreKept restores requests for several keys with different modes, and permits with the
// numbers of a mode. The restored machine must have the same modes and the same snapshot.
func TestModesAreKept(t *testing.T) {
	w := newWorld(t)
	a, b := w.session(1), w.session(2)
	for i, c := range []Command{
		{Key: "tree", Keys: []string{"tree/a", "x"}, Modes: []Mode{ModeIX, ModeX, ModeIS}},
		{Key: "tree", Mode: ModePermits, Permits: 1, Of: subtreePermits},
		{Key: "u", Mode: ModeU},
		{Key: "v", Mode: ModePermits, Permits: upgradablePermits, Of: upgradableOf},
		{Key: "w", Mode: ModeIX},
		{Key: "y", Keys: []string{"z"}, Mode: ModePermits, Permits: 2, Of: 3},
	} {
		c.Kind, c.Session, c.Epoch, c.Number = Acquire, []SessionID{a, b}[i%2], 1, Number(i+1)
		w.do(c, Granted)
	}
	w.check()
	m := again(t, w.m)
	modes := func(m *Machine) (text string) {
		for _, e := range m.Entries() {
			text += fmt.Sprintf("%s %d/%d %d; ", e.Key, e.Permits, e.Of, e.Modes)
		}
		return text
	}
	const want = "tree 1/65536 [2 0 1]; tree 1/65536 []; tree/a 0/0 [2 0 1]; x 1/0 [2 0 1]; " +
		"u 1073741825/2147483648 [4]; v 1073741825/2147483648 []; w 1/65536 [2]; y 2/3 []; z 2/3 []; "
	if modes(w.m) != want || modes(m) != want {
		t.Errorf("\n got %s\n and %s\nwant %s", modes(w.m), modes(m), want)
	}
}

// TestAnUnknownModeIsNotRestored changes the mode of an entry in a snapshot to every other byte.
// Only the modes that its request can have are restored.
func TestAnUnknownModeIsNotRestored(t *testing.T) {
	w := newWorld(t)
	w.do(Command{Kind: Acquire, Session: w.session(1), Epoch: 1, Number: 1, Key: "k", Mode: ModeS}, Granted)
	whole := w.m.Snapshot(nil)
	b := whole[:len(whole)-checksumBytes]
	at := bytes.LastIndex(b, []byte{entryModeFlag, byte(ModeS)}) + 1
	for mode := range 256 {
		b[at] = byte(mode)
		_, err := Restore(binary.LittleEndian.AppendUint32(bytes.Clone(b), checksum(b)))
		if known := Mode(mode) != ModeX && Mode(mode) <= ModeU; (err == nil) != known {
			t.Errorf("mode %d: %v", mode, err)
		}
	}
}

// TestAnUnknownModeCoversNothing compares every pair of modes with the table of what may be
// lowered.
func TestAnUnknownModeCoversNothing(t *testing.T) {
	for has := range Mode(10) {
		for want := range Mode(10) {
			known := has <= ModeU && slices.Contains(lowerModes(has), want) || has == ModeX && want == ModeU
			if has.Covers(want) != known {
				t.Errorf("mode %d covers mode %d: %v", has, want, !known)
			}
		}
	}
}
