package lockfsm

import "testing"

// TestModesFit compares the rule of permits with the matrix of the comment of Mode, for each two
// modes in both orders.
func TestModesFit(t *testing.T) {
	compatible := map[[2]Mode]bool{
		{ModeIS, ModeIS}: true, {ModeIS, ModeIX}: true, {ModeIS, ModeS}: true,
		{ModeIX, ModeIX}: true, {ModeS, ModeS}: true,
	}
	for a := ModeX; a <= ModeS; a++ {
		for b := ModeX; b <= ModeS; b++ {
			w := newWorld(t)
			w.do(Command{Kind: Raise, Version: ModesSince}, Done)
			want := Waiting
			if compatible[[2]Mode{a, b}] || compatible[[2]Mode{b, a}] {
				want = Granted
			}
			for n, mode := range []Mode{a, b} {
				w.do(Command{Rules: ModesSince, Kind: Acquire, Session: w.session(byte(n + 1)), Epoch: 1, Number: 1,
					Key: "k", Modes: []Mode{mode}}, []Code{Granted, want}[n])
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
		w.do(Command{Kind: Acquire, Session: s, Epoch: 1, Number: Number(n + 1), Key: "k", Permits: 1 << 31,
			Of: 1<<32 - 1}, want)
	}
	w.check()
}
