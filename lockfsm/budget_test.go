package lockfsm

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"
)

type filler struct {
	t        *testing.T
	m        *Machine
	buffer   []byte
	sessions []SessionID
	numbers  []Number
	nonces   uint32
}

func (f *filler) apply(c Command) Result {
	f.buffer = c.Append(f.buffer[:0])
	b, _, _ := Next(f.buffer)
	return f.m.Apply(1, 1, b)
}

func (f *filler) open(record []byte) Code {
	f.nonces++
	nonce := Nonce(append(binary.LittleEndian.AppendUint32(nil, f.nonces), make([]byte, 12)...))
	r := f.apply(Command{Kind: Open, Nonce: nonce, Record: record})
	if r.Code == Done {
		f.sessions, f.numbers = append(f.sessions, r.Session), append(f.numbers, 0)
	}
	return r.Code
}

func (f *filler) acquire(i int, c Command) Code {
	f.numbers[i]++
	c.Kind, c.Session, c.Number = Acquire, f.sessions[i], f.numbers[i]
	return f.apply(c).Code
}

// shapes returns the kinds of items that cost a voter the most memory. Each function adds the nth
// item of its kind.
func shapes() map[string]func(f *filler, n int) Code {
	key := func(n, size int) string { return fmt.Sprintf("%0*d", size, n) }
	long := strings.Repeat("v", MaxValueBytes)
	return map[string]func(f *filler, n int) Code{
		"locks, tiny keys":    func(f *filler, n int) Code { return f.acquire(0, Command{Key: key(n, 6)}) },
		"locks, 16 byte keys": func(f *filler, n int) Code { return f.acquire(0, Command{Key: key(n, 16)}) },
		"locks, long keys":    func(f *filler, n int) Code { return f.acquire(0, Command{Key: key(n, 512)}) },
		"locks, 33 byte keys": func(f *filler, n int) Code { return f.acquire(0, Command{Key: key(n, 33)}) },
		"locks, long values": func(f *filler,
			n int) Code {
			return f.acquire(0, Command{Key: key(n, 16), Value: []byte(long)})
		},
		"locks, small values": func(f *filler,
			n int) Code {
			return f.acquire(0, Command{Key: key(n, 8), Value: []byte("v")})
		},
		"locks, keys + values": func(f *filler,
			n int) Code {
			return f.acquire(0, Command{Key: key(n, 512), Value: []byte(long)})
		},
		"locks with owners": func(f *filler, n int) Code {
			// An owner has no owner itself, because the search of a chain of owners takes long.
			return f.acquire(0, Command{Key: key(n, 8), Owner: f.numbers[0] * Number(n%2)})
		},
		"locks with a delay": func(f *filler,
			n int) Code {
			return f.acquire(0, Command{Key: key(n, 8), Delay: time.Hour})
		},
		"waiters": func(f *filler, n int) Code { return f.acquire(0, Command{Key: key(n/60_000, 6)}) },
		"waiters, long values": func(f *filler, n int) Code {
			return f.acquire(0, Command{Key: "k", Value: []byte(long)})
		},
		"readers": func(f *filler, n int) Code { return f.acquire(0, Command{Key: "k", Mode: ModeIS}) },
		"readers that want a notice": func(f *filler, n int) Code {
			return f.acquire(0, Command{Key: "k", Mode: ModeIS, Notice: true})
		},
		"permits, each of another total": func(f *filler, n int) Code {
			return f.acquire(0, Command{Key: "k", Mode: ModePermits, Permits: 1, Of: 1<<30 - uint32(n)})
		},
		"stays": func(f *filler, n int) Code {
			return f.acquire(0, Command{Key: "k", Mode: ModeIS, Sticky: true})
		},
		"several keys": func(f *filler, n int) Code {
			keys := make([]string, 16)
			for i := range keys {
				keys[i] = key(16*n+i, 8)
			}
			return f.acquire(0, Command{Key: keys[0], Keys: keys[1:]})
		},
		"a lock in each session": func(f *filler, n int) Code {
			if code := f.open(nil); code != Done {
				return code
			}
			return f.acquire(len(f.sessions)-1, Command{Key: key(n, 8)})
		},
		"an owned lock in each session": func(f *filler, n int) Code {
			if code := f.open(nil); code != Done {
				return code
			}
			f.numbers[len(f.numbers)-1]++
			return f.acquire(len(f.sessions)-1, Command{Key: key(n, 8), Owner: 1})
		},
		"sessions":               func(f *filler, n int) Code { return f.open(nil) },
		"sessions, long records": func(f *filler, n int) Code { return f.open(make([]byte, MaxRecordBytes)) },
		"detached holds": func(f *filler, n int) Code {
			if code := f.acquire(0, Command{Key: key(n, 8), Delay: time.Hour}); code != Granted {
				return code
			}
			return f.apply(Command{Kind: Detach, Session: f.sessions[0], Number: f.numbers[0]}).Code
		},
		"data": func(f *filler, n int) Code {
			return f.apply(Command{Kind: Put, Key: key(n, 8), Nonce: Nonce{1},
				Value: []byte(strings.Repeat(long, 4))}).Code
		},
		"small data": func(f *filler, n int) Code {
			return f.apply(Command{Kind: Put, Key: key(n, 8), Nonce: Nonce{1}, Value: []byte("v")}).Code
		},
	}
}

// TestChargesCoverTheHeap fills an eighth of the default budget with each shape and checks that the
// charges cover the used memory: the state, three copies of its snapshot, and a log of one and a
// half times the snapshot's size.
func TestChargesCoverTheHeap(t *testing.T) {
	for name, add := range shapes() {
		t.Run(name, func(t *testing.T) {
			charter := smallCharter()
			charter.Rules = RulesVersion
			charter.Limits.GroupBytes /= 8
			charter.Limits.SessionBytes = charter.Limits.GroupBytes
			before := heap()
			m, err := New(charter)
			if err != nil {
				t.Fatal(err)
			}
			f := &filler{t: t, m: m}
			f.apply(Command{Kind: Born})
			f.open(nil)
			n, code := 0, Code(0)
			for ; ; n++ {
				if code = add(f, n); code != Done && code != Granted && code != Waiting {
					break
				}
			}
			if code == TooMuchData && name == "small data" {
				t.Logf("data reaches its limit of keys first")
			} else if code != OverGroupBudget && code != OverSessionBudget {
				t.Fatalf("the %dth: %v, want a refusal by the budget", n, code)
			}
			m.history.events, m.spares = eventLog{}, spares{} // these are bounded separately
			f.buffer = nil
			held := heap() - before
			snapshot := len(m.Snapshot(nil))
			charged := m.Usage().Bytes
			cost := held + uint64(snapshot)*9/2
			t.Logf("%d: %d bytes of heap each, %d of snapshot, %d charged, %.2f used of the charge", n,
				held/uint64(n), snapshot/n, charged/uint64(n), float64(cost)/float64(charged))
			if cost > charged {
				t.Errorf("%d things cost %d bytes of a voter's memory, charged %d", n, cost, charged)
			}
			restored, err := Restore(m.Snapshot(nil))
			if err != nil || restored.Usage() != m.Usage() {
				t.Errorf("restored: %v, charged %+v, want %+v", err, restored.Usage(), m.Usage())
			}
			runtime.KeepAlive(f)
		})
	}
}

// TestALockIsSmall holds the memory of a lock in each replica. These are sizes of the runtime.
func TestALockIsSmall(t *testing.T) {
	if l, e, q := unsafe.Sizeof(lock{}), unsafe.Sizeof(entry{}), unsafe.Sizeof(queue{}); l > 64 || e > 80 || q > 80 {
		t.Errorf("a lock has %d bytes, an entry %d, and a queue %d", l, e, q)
	}
}
