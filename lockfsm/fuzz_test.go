package lockfsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"
)

// FuzzDecode checks that no bytes cause a panic, and that an accepted command has only one
// encoding.
func FuzzDecode(f *testing.F) {
	var batch []byte
	for _, c := range everyKind() {
		f.Add(c.Append(nil))
		batch = c.Append(batch)
	}
	f.Add(batch)
	f.Fuzz(func(t *testing.T, batch []byte) {
		for len(batch) > 0 {
			command, rest, err := Next(batch)
			if err != nil {
				return
			}
			head, headErr := Peek(command)
			c, err := Decode(command)
			if headErr == nil && head.Rules > RulesVersion && !errors.Is(err, ErrRules) {
				t.Fatalf("%x of later rules: %v; its header alone decides", command, err)
			}
			if err == nil {
				if framed := batch[:len(batch)-len(rest)]; !bytes.Equal(c.Append(nil), framed) {
					t.Fatalf("%x decodes to %+v, which encodes as %x", framed, c, c.Append(nil))
				}
				if headErr != nil || head != (Header{c.Rules, c.Kind, c.Session, c.Epoch, c.Number}) {
					t.Fatalf("%x: Peek %+v, %v; Decode %+v", command, head, headErr, c)
				}
			}
			batch = rest
		}
	})
}

// FuzzApply checks that a command has the same effect in the machine and in the twin, and that
// other bytes change nothing. The first byte chooses between a group after its grace and a group in
// its grace, and between versions 1 and 3 of the rules.
func FuzzApply(f *testing.F) {
	_, a, b := crowded(f)
	for _, c := range everyKind() {
		c.Session = a
		f.Add(byte(0), c.Append(nil))
	}
	attach := Command{Kind: Attach, Session: b, Epoch: 2, Number: 9, Nonce: Nonce{2}, Live: []Range{{2, 3}}}.Append(nil)
	f.Add(byte(0), Command{Kind: Release, Session: b, Epoch: 2, Number: 2}.Append(attach))
	f.Add(byte(1), Command{Kind: Close, Session: a, Epoch: 1}.Append(Command{Kind: EndGrace}.Append(nil)))
	f.Add(byte(1), Command{Kind: Acquire, Session: a, Epoch: 1, Number: 4, Key: "x", Try: true}.Append(nil))
	stay := Command{Kind: Acquire, Session: a, Epoch: 1, Number: 4, Key: "w", Sticky: true}
	try := Command{Kind: Acquire, Session: b, Epoch: 1, Number: 4, Key: "w", Try: true}
	answer := Command{Kind: InUse, Session: a, Epoch: 1, Number: 4, Revision: maxRevision, Token: 1}
	stays := try.Append(stay.Append(Command{Kind: Stamp, WallUnixMS: 1000}.Append(nil)))
	f.Add(byte(0), answer.Append(stays))
	f.Add(byte(0), Command{Kind: Release, Session: a, Epoch: 1, Number: 4}.Append(stays))
	hold := Command{Kind: Acquire, Session: a, Epoch: 1, Number: 4, Key: "w", Mode: ModeU}
	up := Command{Kind: Acquire, Session: a, Epoch: 1, Number: 5, Key: "w", Upgrades: true, Owner: 4}
	read := Command{Kind: Acquire, Session: b, Epoch: 1, Number: 4, Key: "w", Mode: ModeIS}
	upgrade := up.Append(read.Append(hold.Append(nil)))
	f.Add(byte(0), Command{Kind: Release, Session: b, Epoch: 1, Number: 4}.Append(upgrade))
	f.Add(byte(0), Command{Kind: Release, Session: a, Epoch: 1, Number: 4}.Append(upgrade))
	stay.Mode, try.Number = ModeIS, 5
	stays = stay.Append(Command{Kind: Stamp, WallUnixMS: 1000}.Append(nil))
	stay.Session = b
	f.Add(byte(0), answer.Append(try.Append(stay.Append(stays))))
	guest := guestOpen(Command{Nonce: Nonce{3}}, 3, "lock w", "lock x", "read x", "force x")
	opens := guestOpen(Command{Nonce: Nonce{3}}, 4, "lock w").Append(guest.Append(nil))
	f.Add(byte(0), Command{Kind: Open, Nonce: Nonce{1}, Opener: Opener{Instance: [16]byte{48}}}.Append(opens))
	evict := Command{Kind: Evict, Key: "x", Token: 2097159, Rights: guest.Rights}
	f.Add(byte(0), evict.Append(opens))
	f.Fuzz(func(t *testing.T, which byte, batch []byte) {
		charter := smallCharter()
		if which&1 != 0 {
			charter.Grace = 1
		}
		charter.Limits = Limits{KeyBytes: 8, WaitersPerLock: 4, EntriesPerSession: 5, Sessions: 3,
			SessionBytes: 8 << 10, GroupBytes: 16 << 10}
		m, err := New(charter)
		if err != nil {
			t.Fatal(err)
		}
		twin := newTwin(charter, RulesVersion)
		for _, c := range crowd(a, b) {
			m.Apply(1, 1, encode(t, c))
			twin.apply(1, c)
		}
		for len(batch) > 0 {
			command, rest, err := Next(batch)
			if err != nil {
				break
			}
			judgeOne(t, m, twin, command)
			batch = rest
		}
		if m.Failed() == nil {
			again(t, m)
		}
	})
}

// crowd returns commands that lead to the same state as the function crowded.
func crowd(a, b SessionID) []Command {
	acquire := func(s SessionID, n Number, key string) Command {
		return Command{Kind: Acquire, Session: s, Epoch: 1, Number: n, Key: key}
	}
	return []Command{
		{Kind: Born},
		{Kind: Open, Nonce: Nonce{1}, Record: []byte{1}}, {Kind: Attach, Session: a, Epoch: 1, Number: 1,
			Nonce: Nonce{1}},
		{Kind: Open, Nonce: Nonce{2}, Record: []byte{2}}, {Kind: Attach, Session: b, Epoch: 1, Number: 1,
			Nonce: Nonce{2}},
		acquire(a, 1, "x"), acquire(b, 1, "x"), acquire(a, 2, "x"), acquire(b, 2, "x"), acquire(b, 3, "y"),
		acquire(a, 3, "z"),
	}
}

func judgeOne(t *testing.T, m *Machine, twin *twin, command []byte) {
	t.Helper()
	before := m.picture()
	got := keep(m.Apply(2, 1, command))
	if err := m.Check(); err != nil {
		t.Fatalf("%x: %v", command, err)
	}
	c, err := Decode(command)
	if err != nil {
		want := Malformed
		if head, headErr := Peek(command); headErr == nil && head.Rules > m.charter.Rules {
			want = Unsupported // its header alone decides
		}
		if got.Code != want {
			t.Fatalf("%x cannot be decoded (%v), yet: %s", command, err, describe(got))
		}
		if !m.picture().equal(before) {
			t.Fatalf("%x cannot be decoded (%v), yet it changed\n%s\ninto\n%s", command, err, before, m.picture())
		}
		return
	}
	if want := twin.apply(1, c); !sameResult(got, want) {
		t.Fatalf("%+v\n got %s\nwant %s", c, describe(got), describe(want))
	}
	if got, want := m.picture(), twin.picture(); !got.equal(want) {
		t.Fatalf("%+v\n got %s\nwant %s", c, got, want)
	}
}

// FuzzRestore calls Restore with any bytes, and corrects their checksum. Restore must not panic. An
// accepted snapshot must satisfy the invariants, be the only encoding of its state, and give a
// machine that accepts commands.
func FuzzRestore(f *testing.F) {
	w, a, _ := crowded(f)
	f.Add(w.m.Snapshot(nil))
	w.do(Command{Kind: Attach, Session: a, Epoch: 7, Number: 9, Nonce: Nonce{1}}, Done)
	f.Add(w.m.Snapshot(nil))
	w.do(Command{Kind: Adopt, TTL: 1, Settings: []byte("settings")}, Done)
	f.Add(w.m.Snapshot(nil))
	f.Add(kinds(f).m.Snapshot(nil))
	f.Add(staying(f).m.Snapshot(nil))
	f.Add(withUpgrades(f).m.Snapshot(nil))
	m, _ := New(smallCharter())
	f.Add(m.Snapshot(nil))
	f.Add([]byte(snapshotMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := Restore(b); err != nil && len(b) >= checksumBytes {
			b = bytes.Clone(b)
			binary.LittleEndian.PutUint32(b[len(b)-checksumBytes:], checksum(b[:len(b)-checksumBytes]))
		}
		m, err := Restore(b)
		if err != nil {
			return
		}
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(m.Snapshot(nil), b) {
			t.Fatalf("restored from\n%x\nbut its snapshot is\n%x", b, m.Snapshot(nil))
		}
		for _, s := range m.Sessions() {
			c := Command{Kind: Attach, Session: s.ID, Epoch: s.Epoch + 1, Number: 1, Nonce: s.Nonce}
			m.Apply(1, 1, encode(t, c))
		}
		for _, c := range []Command{{Kind: Born}, {Kind: EndGrace}, {Kind: Open, Nonce: Nonce{99}}} {
			m.Apply(1, 1, encode(t, c))
		}
		if err := m.Check(); err != nil {
			t.Fatalf("after some commands: %v\n%s", err, m.picture())
		}
	})
}

// FuzzCapture checks that commands of any bytes do not affect a capture, and that the capture does
// not affect the commands.
func FuzzCapture(f *testing.F) {
	_, a, b := crowded(f)
	release := Command{Kind: Release, Session: a, Epoch: 1, Number: 1}.Append(nil)
	f.Add(byte(0), []byte{1}, Command{Kind: Acquire, Session: b, Epoch: 1, Number: 5, Key: "x"}.Append(release))
	f.Add(byte(0), []byte{0, 3}, Command{Kind: Close, Session: b, Epoch: 1}.Append(Command{Kind: Leaving, Session: a,
		Epoch: 1}.Append(nil)))
	f.Add(byte(1), []byte{2, 0}, Command{Kind: EndGrace}.Append(Command{Kind: Stamp, WallUnixMS: 99}.Append(nil)))
	f.Add(byte(1), []byte{9}, Command{Kind: Attach, Session: b, Epoch: 2, Number: 9, Nonce: Nonce{2},
		Live: []Range{{2, 3}}}.Append(nil))
	f.Fuzz(func(t *testing.T, which byte, steps, batch []byte) {
		charter := smallCharter()
		charter.Grace = time.Duration(which & 1)
		log := run{charter: charter, supported: RulesVersion}
		m, plain := log.machine(t), log.machine(t)
		for _, c := range crowd(a, b) {
			m.Apply(1, 1, encode(t, c))
			plain.Apply(1, 1, encode(t, c))
		}
		want, c := plain.Snapshot(nil), m.Capture()
		for len(batch) > 0 {
			if len(steps) > 0 {
				c.Step(int(steps[0] % 8))
				steps = steps[1:]
			}
			command, rest, err := Next(batch)
			if err != nil {
				break
			}
			if got, want := keep(m.Apply(2, 1, command)), plain.Apply(2, 1, command); !sameResult(got, want) {
				t.Fatalf("%x\n got %s\nwant %s", command, describe(got), describe(want))
			}
			batch = rest
		}
		for !c.Step(1) {
		}
		if got := c.AppendTo(nil, func() {}); !bytes.Equal(got, want) {
			t.Fatalf("captured\n%x\nwant\n%x", got, want)
		}
		if !bytes.Equal(m.Snapshot(nil), plain.Snapshot(nil)) {
			t.Fatal("the states have diverged")
		}
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
	})
}
