package cluster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// disk is a directory in memory. Save takes a while, like a sync. The disk remembers every claim
// that was ever stored, to detect a node that sends a claim before storing it.
type disk struct {
	mu     sync.Mutex // guards the fields below
	values map[string][]byte
	claims map[claim]bool
	saves  int
	stuck  bool  // Save blocks until it is released
	fails  error // the next Save fails
}

// claim is the phase that an instance claims for itself in an answer.
type claim struct {
	instance nodeid.ID
	phase    Phase
}

func newDisk() *disk { return &disk{values: map[string][]byte{}, claims: map[claim]bool{}} }

func (d *disk) copied() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	other := newDisk()
	for name, b := range d.values {
		other.values[name] = bytes.Clone(b)
	}
	other.claims = maps.Clone(d.claims)
	return other
}

func (d *disk) Load() (map[string][]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.values), nil
}

func (d *disk) Save(changes map[string][]byte) error {
	time.Sleep(3 * time.Millisecond)
	for d.is(func() bool { return d.stuck }) {
		time.Sleep(time.Millisecond)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails != nil {
		return d.fails
	}
	d.saves++
	for name, b := range changes {
		if b == nil {
			delete(d.values, name)
			continue
		}
		d.values[name] = bytes.Clone(b)
	}
	content, err := unseal(recordState, d.values[recordState])
	if err != nil {
		return err
	}
	st, err := founding.DecodeState(content)
	if err != nil {
		return err
	}
	d.claims[claim{st.Instance, st.Phase}] = true
	return nil
}

func (d *disk) is(what func() bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return what()
}

func (d *disk) state(t *testing.T) founding.State {
	t.Helper()
	s, err := recall(d)
	if err != nil || s == nil {
		t.Fatalf("the directory cannot be read: %v, %v", s, err)
	}
	return s.state
}

// claimed decodes an answer about its instance: a version, a kind, and then name, address and
// phase for "who" (kind 2), or group and refusal for a verdict (kind 4). A refusal of 0 means
// that the instance has accepted.
func claimed(by nodeid.ID, answer []byte) (claim, bool) {
	if len(answer) < 4 {
		return claim{}, false
	}
	kind, b := answer[1], answer[2:]
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		b = b[n:]
		return v
	}
	c := claim{instance: by}
	switch kind {
	case 2:
		for range 2 {
			b = b[number():]
		}
		c.phase = Phase(number())
	case 4:
		number()
		if number() == 0 {
			c.phase = Bound
		}
	}
	return c, true
}

func (d *disk) durable(cfg Config) Config {
	cfg.Records = d
	return cfg
}

// said verifies that a claim that the node sends is stored. On a disk that fails, only promises
// are checked.
func (n *node) said(how string, c claim) {
	d, ok := n.cfg.Records.(*disk)
	if !ok || d.is(func() bool {
		return d.claims[c] || c.phase == Bound && d.claims[claim{c.instance, PhaseMember}] ||
			c.phase != Bound && d.fails != nil
	}) {
		return
	}
	n.f.t.Errorf("%s %s as instance %x, %v, which is not stored", n.cfg.Name, how, c.instance, c.phase)
}

func TestRecordsReturnAndDamageIsSeen(t *testing.T) {
	for name, content := range map[string][]byte{
		recordIdentity: identity{Life: 7, Label: "l", Name: "n", Row: Row{"s", 5}}.append(nil),
		recordBook: founding.AppendVoters(nil,
			[]Voter{{Raft: 1, Instance: nodeidtest.ID(2), Addr: "a:1", Life: 3}}),
	} {
		b := seal(content)
		if got, err := unseal(name, b); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s came back as % x, %v", name, got, err)
		}
		for i := range b {
			for bit := range 8 {
				bad := bytes.Clone(b)
				bad[i] ^= 1 << bit
				if _, err := unseal(name, bad); !errors.Is(err, ErrDirectory) {
					t.Errorf("%s with bit %d of byte %d flipped: %v", name, bit, i, err)
				}
			}
			if _, err := unseal(name, b[:i]); !errors.Is(err, ErrDirectory) {
				t.Errorf("%s cut to %d bytes: %v", name, i, err)
			}
		}
	}
	newer := seal(nil)
	newer[0]++
	newer = binary.BigEndian.AppendUint32(newer[:len(newer)-4], castagnoli(newer[:len(newer)-4]))
	if _, err := unseal("x", append(newer[:1],
		binary.BigEndian.AppendUint32(nil, castagnoli(newer[:1]))...)); err == nil {
		t.Error("a record of a newer version was accepted")
	}
}

// TestAStoredKeyProvesTheStoredID checks that a key whose hash is not the stored ID counts as
// damage. With such a key no peer would accept the instance.
func TestAStoredKeyProvesTheStoredID(t *testing.T) {
	d := newDisk()
	d.values = map[string][]byte{
		recordIdentity: seal(identity{Life: 1, Label: "l", Row: Row{Since: 1}}.append(nil)),
		recordState:    seal((&founding.State{Instance: nodeidtest.Key(1).ID()}).Append(nil)),
		recordBook:     seal(founding.AppendVoters(nil, nil)), recordKey: seal(nodeidtest.Key(2).Seed()),
	}
	if _, err := recall(d); !errors.Is(err, ErrDirectory) {
		t.Errorf("the key of another instance is read: %v", err)
	}
}

// TestWhichStartsHaveEnded begins starts one after another at the given sites, and checks which of
// them each one claims to have ended. A start that is not counted, because nothing was saved, is
// no start.
func TestWhichStartsHaveEnded(t *testing.T) {
	for name, c := range map[string]struct {
		sites string
		since []uint64
	}{
		"one machine":                    {"aaaa", []uint64{0, 1, 1, 1}},
		"another machine and back":       {"abaa", []uint64{0, 0, 0, 3}},
		"a disk that was taken away":     {"abba", []uint64{0, 0, 2, 0}},
		"a reboot":                       {"aabb", []uint64{0, 1, 0, 3}},
		"nothing is known":               {"----", []uint64{0, 0, 0, 0}},
		"something is known from now on": {"--aa", []uint64{0, 0, 0, 3}},
		"for one start nothing is known": {"aa-a", []uint64{0, 1, 0, 0}},
	} {
		d := newDisk()
		for i, site := range c.sites {
			cfg := Config{Name: "n", Label: "l", Records: d, Key: nodeidtest.Key(1), Site: strings.Trim(string(site), "-"),
				Logger: slog.New(slog.DiscardHandler)}.withDefaults()
			b, err := Begins(d, cfg.Site)
			life, since := uint64(i+1), c.since[i]
			if err != nil || b.Life != nodeid.Start(life, cfg.Site) || b.Since != nodeid.Start(since, cfg.Site) {
				t.Errorf("%s: start %d at %c: %+v, %v, want since %d", name, i+1, site, b, err, c.since[i])
			}
			if err := (&Cluster{cfg: cfg, ctx: t.Context()}).begin(); err != nil {
				t.Fatal(err)
			}
			if got, err := recall(d); err != nil || got.identity.Life != life || got.identity.Ended(life) != since {
				t.Errorf("%s: stored %+v, %v", name, got.identity, err)
			}
		}
	}
}

type unreadable struct{ Records }

func (unreadable) Load() (map[string][]byte, error) { return nil, errors.New("a bad sector") }

func TestRecordsThatCannotBeRead(t *testing.T) {
	if _, err := recall(unreadable{}); !errors.Is(err, ErrDirectory) || !strings.Contains(err.Error(), "a bad sector") {
		t.Error(err)
	}
}

// TestEveryRecordIsReadWhole cuts each record at every length and appends a byte to it, with the
// right checksum. All these are refused.
func TestEveryRecordIsReadWhole(t *testing.T) {
	good := map[string][]byte{
		recordIdentity: identity{Life: 7, Label: "l", Name: "n", Row: Row{"s", 5}}.append(nil),
		recordState:    (&founding.State{Instance: nodeidtest.Key(1).ID()}).Append(nil),
		recordBook:     founding.AppendVoters(nil, []Voter{{Raft: 1, Instance: nodeidtest.ID(2), Addr: "a:1", Life: 3}}),
		recordKey:      nodeidtest.Key(1).Seed(),
	}
	d := newDisk()
	for name, content := range good {
		d.values[name] = seal(content)
	}
	if _, err := recall(d); err != nil {
		t.Fatal(err)
	}
	for name, content := range good {
		for n := range len(content) {
			d.values[name] = seal(content[:n])
			if _, err := recall(d); !errors.Is(err, ErrDirectory) {
				t.Errorf("%d of the %d bytes of the record %s are read: %v", n, len(content), name, err)
			}
		}
		d.values[name] = seal(append(bytes.Clone(content), 0))
		if _, err := recall(d); !errors.Is(err, ErrDirectory) {
			t.Errorf("the record %s is read with a byte more: %v", name, err)
		}
		d.values[name] = seal(content)
	}
}

// FuzzRecords passes arbitrary bytes to every decoder of a directory. Accepted content must be
// encoded to the same bytes.
func FuzzRecords(f *testing.F) {
	f.Add(identity{Life: 7, Label: "l", Name: "n", Row: Row{"s", 5}}.append(nil))
	f.Add(founding.AppendVoters(nil, []Voter{{Raft: 1, Instance: nodeidtest.ID(2), Addr: "a:1", Life: 3}}))
	f.Add(seal([]byte("x")))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = unseal("x", b)
		if id, err := decodeIdentity(b); err == nil {
			if again, err := decodeIdentity(id.append(nil)); err != nil || again != id {
				t.Fatalf("%+v came back as %+v, %v", id, again, err)
			}
		}
		for _, name := range [...]string{recordIdentity, recordState, recordBook, recordKey} {
			d := newDisk()
			d.values = map[string][]byte{
				recordIdentity: seal(identity{Life: 1, Label: "l", Row: Row{Since: 1}}.append(nil)),
				recordState:    seal((&founding.State{Instance: nodeidtest.Key(1).ID()}).Append(nil)),
				recordBook:     seal(founding.AppendVoters(nil, nil)), recordKey: seal(nodeidtest.Key(1).Seed()),
			}
			if _, err := recall(d); err != nil {
				t.Fatal(err)
			}
			d.values[name] = seal(b)
			if _, err := recall(d); err != nil && !errors.Is(err, ErrDirectory) {
				t.Fatal(err)
			}
		}
	})
}

var errDisk = fmt.Errorf("no space left on device")
