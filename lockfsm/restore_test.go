package lockfsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

func TestDamagedSnapshot(t *testing.T) {
	w, _, _ := crowded(t)
	snapshot := w.m.Snapshot(nil)
	for i := range len(snapshot) * 8 {
		b := bytes.Clone(snapshot)
		b[i/8] ^= 1 << (i % 8)
		if _, err := Restore(b); !errors.Is(err, ErrSnapshot) {
			t.Fatalf("bit %d flipped: %v", i, err)
		}
	}
	for i := range snapshot {
		if _, err := Restore(snapshot[:i]); !errors.Is(err, ErrSnapshot) {
			t.Fatalf("cut off after %d of %d bytes: %v", i, len(snapshot), err)
		}
	}
}

// TestForgedSnapshot checks that a damaged snapshot with a correct checksum is refused or describes
// a possible state.
func TestForgedSnapshot(t *testing.T) {
	w, _, _ := crowded(t)
	for name, w := range map[string]*world{"crowded": w, "upgrading": withUpgrades(t)} {
		t.Run(name, func(t *testing.T) { forged(t, w.m.Snapshot(nil)) })
	}
}

func forged(t *testing.T, snapshot []byte) {
	t.Helper()
	body := snapshot[:len(snapshot)-checksumBytes]
	accepted := 0
	for i := range body {
		for v := range 256 {
			b := bytes.Clone(body)
			b[i] = byte(v)
			b = binary.LittleEndian.AppendUint32(b, checksum(b))
			m, err := Restore(b)
			if err != nil {
				continue
			}
			accepted++
			if err := m.Check(); err != nil {
				t.Fatalf("byte %d = %d: %v", i, v, err)
			}
		}
	}
	for i := range body {
		b := binary.LittleEndian.AppendUint32(bytes.Clone(body[:i]), checksum(body[:i]))
		if _, err := Restore(b); err == nil {
			t.Fatalf("cut off after %d of %d bytes, checksum corrected: no error", i, len(body))
		}
	}
	longer := append(bytes.Clone(body), 0)
	if _, err := Restore(binary.LittleEndian.AppendUint32(longer, checksum(longer))); !errors.Is(err, ErrSnapshot) {
		t.Errorf("a trailing byte: %v", err)
	}
	t.Logf("%d of %d single-byte forgeries describe a possible state", accepted, len(body)*256)
}

func TestNewerSnapshot(t *testing.T) {
	c := smallCharter()
	c.Rules = RulesVersion + 1
	m, err := newMachine(c, RulesVersion+1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(m.Snapshot(nil)); !errors.Is(err, ErrRules) || !errors.Is(err, ErrSnapshot) {
		t.Errorf("newer rules: %v", err)
	}
	w, _, _ := crowded(t)
	b := w.m.Snapshot(nil)
	b[len(snapshotMagic)]++
	binary.LittleEndian.PutUint32(b[len(b)-checksumBytes:], checksum(b[:len(b)-checksumBytes]))
	if _, err := Restore(b); !errors.Is(err, ErrSnapshot) {
		t.Errorf("newer format: %v", err)
	}
}

// TestLyingSnapshot checks that a false count causes no large allocation, even if the count does
// not fit in an int.
func TestLyingSnapshot(t *testing.T) {
	w := newWorld(t)
	body := w.m.Snapshot(nil)
	body = body[:len(body)-checksumBytes-4] // without the counts of sessions, locks, events and ends
	for _, count := range []uint64{1, 1 << 20, 1 << 40, 1 << 63, 1<<64 - 1} {
		for _, counts := range [][]uint64{{count, 0, 0, 0}, {0, count, 0, 0}, {0, 0, 0, count}} {
			b := bytes.Clone(body)
			for _, n := range counts {
				b = binary.AppendUvarint(b, n)
			}
			b = binary.LittleEndian.AppendUint32(b, checksum(b))
			if n := testing.AllocsPerRun(1, func() { _, _ = Restore(b) }); n > 100 {
				t.Errorf("%v allocations for %d bytes that claim %d", n, len(b), counts)
			}
			if _, err := Restore(b); !errors.Is(err, ErrSnapshot) {
				t.Errorf("%d sessions, locks, events and ends: %v", counts, err)
			}
		}
	}
}

func TestSnapshotAppends(t *testing.T) {
	w, _, _ := crowded(t)
	alone, behind := w.m.Snapshot(nil), w.m.Snapshot([]byte("abc"))
	if !bytes.Equal(behind, append([]byte("abc"), alone...)) {
		t.Error("a snapshot appended to other bytes differs")
	}
}

func TestRestoreSharesNothing(t *testing.T) {
	w, a, _ := crowded(t)
	w.do(Command{Kind: Adopt, Settings: []byte("settings")}, Done)
	snapshot := w.m.Snapshot(nil)
	b := bytes.Clone(snapshot)
	m, err := Restore(b)
	if err != nil {
		t.Fatal(err)
	}
	clear(b)
	w.do(Command{Kind: Close, Session: a, Epoch: 1}, Done)
	if !bytes.Equal(m.Snapshot(nil), snapshot) {
		t.Error("the restored machine changed")
	}
}
