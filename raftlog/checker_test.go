package raftlog

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// checker observes all replicas of a run, and records violations of the guarantees.
type checker struct {
	entries map[uint64]committed // by index
	last    uint64               // highest index that any replica has applied
	leaders map[uint64]uint64    // leader of each term
	next    map[uint64]uint64    // for each term, the number of the next batch that must be applied
	configs map[uint64]string    // by index
	faults  []string
}

type committed struct {
	term  uint64
	data  string
	state uint64 // state of the machine after the entry
}

func newChecker() *checker {
	return &checker{entries: map[uint64]committed{}, leaders: map[uint64]uint64{}, next: map[uint64]uint64{},
		configs: map[uint64]string{}}
}

func (k *checker) fault(format string, args ...any) {
	if len(k.faults) < 10 {
		k.faults = append(k.faults, fmt.Sprintf(format, args...))
	}
}

func (k *checker) role(id uint64, r Role) {
	if !r.Leading {
		return
	}
	if other, ok := k.leaders[r.Term]; ok && other != id {
		k.fault("replicas %d and %d both lead in term %d", other, id, r.Term)
	}
	k.leaders[r.Term] = id
}

// applied checks that all replicas apply the same entry at the same index, and each batch once, in
// order and in its own term.
func (k *checker) applied(id, index, term uint64, data []byte, state uint64) {
	if seen, ok := k.entries[index]; ok {
		if seen.term != term || seen.data != string(data) || seen.state != state {
			k.fault("replica %d applied another entry %d of term %d than was committed in term %d", id, index, term,
				seen.term)
		}
		return
	}
	k.entries[index] = committed{term, string(data), state}
	k.last = max(k.last, index)
	for len(data) > 0 {
		b := decodeBatch(data)
		data = data[batchBytes:]
		if b.term != term {
			k.fault("batch %d of term %d was applied in term %d", b.number, b.term, term)
		}
		if want := k.next[b.term]; b.number != want {
			k.fault("batch %d of term %d was applied when %d was due", b.number, b.term, want)
		}
		k.next[b.term] = b.number + 1
	}
}

// configured checks that all replicas have the same configuration at the same index. A
// configuration must have a voter, must have the right context for each member, and must not be
// older than the previous configuration of the replica.
func (k *checker) configured(id uint64, before, now Configuration) {
	got := fmt.Sprintf("%d %d %d %d %v", now.Index, now.Voters, now.Outgoing, now.Learners, now.Members)
	if want, ok := k.configs[now.Index]; ok && got != want {
		k.fault("replica %d has the configuration %s, and another has %s", id, got, want)
	}
	k.configs[now.Index] = got
	if now.Index < before.Index || len(now.Voters) == 0 {
		k.fault("replica %d goes from configuration %d to %s", id, before.Index, got)
	}
	for _, m := range now.Members {
		if string(m.Context) != fmt.Sprint("replica ", m.ID) {
			k.fault("replica %d has only the context %[3]q of replica %[2]d", id, m.ID, m.Context)
		}
	}
}

type batch struct{ term, number uint64 }

const batchBytes = 16

func (b batch) encode() []byte {
	out := binary.BigEndian.AppendUint64(nil, b.term)
	return binary.BigEndian.AppendUint64(out, b.number)
}

func decodeBatch(b []byte) batch {
	return batch{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

// machine is a state machine whose state is a hash of everything that was applied.
type machine struct {
	index, state uint64
}

func (m *machine) apply(index uint64, data []byte) {
	h := fnv.New64a()
	h.Write(m.snapshot())
	binary.Write(h, binary.BigEndian, index)
	h.Write(data)
	m.index, m.state = index, h.Sum64()
}

func (m *machine) snapshot() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, m.index), m.state)
}

func (m *machine) restore(b []byte) {
	*m = machine{}
	if len(b) == 16 {
		*m = machine{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
	}
}
