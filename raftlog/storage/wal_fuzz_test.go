package storage

import (
	"bytes"
	"errors"
	"testing"

	"github.com/mortise-lock/mortise/raftlog"
)

// Any accepted payload must have the same content after decoding and encoding.
func FuzzItems(f *testing.F) {
	f.Add(appendIdentity(nil, raftlog.Identity{Group: 1, ID: 2}))
	f.Add(appendHardState(appendIdentity(nil, crashID), testHard(1, 2, 3)))
	f.Add(appendEntries(appendSnapshot(nil, snapshotMark{1, 2, 3, 4, 5}, true), testEntries(2, 1, 3, 20)))
	f.Add(appendSeal([]byte{itemMark}, 7))
	f.Add([]byte{itemEntries, 1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, payload []byte) {
		it, err := decodeItems(payload)
		if err != nil {
			return
		}
		if len(it.entries) > len(payload) {
			t.Fatalf("%d entries of %d bytes", len(it.entries), len(payload))
		}
		if len(it.entries) > 0 {
			again, err := decodeItems(appendEntries(nil, it.entries))
			if err != nil || again.first != it.first || len(again.entries) != len(it.entries) {
				t.Fatalf("written again: %v", err)
			}
		}
	})
}

// readFrame accepts only a whole frame with the right number and salt.
func FuzzFrame(f *testing.F) {
	frame := func(number, salt uint64, payload []byte) []byte {
		return sealFrame(append(make([]byte, frameHeadBytes), payload...), number, salt)
	}
	f.Add(frame(1, 2, []byte{itemMark}), uint64(1), uint64(2))
	f.Add(append(frame(1, 2, appendIdentity(nil, crashID)), frame(2, 2, []byte{itemMark})...), uint64(1), uint64(2))
	f.Add(frame(1, 2, nil)[:20], uint64(1), uint64(2))
	f.Add(frame(2, 2, []byte{itemMark}), uint64(1), uint64(2)) // a frame with another number
	f.Add(frame(1, 3, []byte{itemMark}), uint64(1), uint64(2)) // a frame with another salt
	f.Fuzz(func(t *testing.T, b []byte, number, salt uint64) {
		payload, size, v := readFrame(b, number, salt)
		if v == frameWhole && !bytes.Equal(frame(number, salt, payload), b[:size]) {
			t.Fatal("another frame would be written")
		}
	})
}

// segmentHead is a length that exceeds the used part of a header.
const segmentHead = 256

// FuzzSegment opens a log with arbitrary bytes after a valid header, and with an arbitrary header.
// A short header is padded with zeros and gets a checksum.
func FuzzSegment(f *testing.F) {
	h := newHistory(1, nil, raftlog.State{})
	if err := h.run(3); err != nil {
		f.Fatal(err)
	}
	for name, data := range h.fs.live() {
		if _, _, ok := parseName(segmentPrefix, name); ok {
			f.Add(data[:segmentHead], data[headerBytes:headerBytes+1024], true)
			f.Add(data[:segmentHead], data[headerBytes:headerBytes+500], false)
			f.Add(data[:headerBytes], data[headerBytes:headerBytes+500], false)
		}
	}
	f.Fuzz(func(t *testing.T, head, body []byte, sign bool) {
		short := len(head) < headerBytes
		data := extend(append(extend(bytes.Clone(head), headerBytes), body...), crashSegment)[:crashSegment]
		if short {
			putChecksum(data[:headerBytes])
		}
		if sign { // without this, the checksums reject most inputs
			putChecksum(data[:headerBytes])
			if hd, err := decodeHeader(data); err == nil {
				at, number := headerBytes, hd.first
				for at+frameHeadBytes <= len(data) {
					n := int(data[at+4])&^7 + int(data[at+5])<<8
					if n == 0 || at+frameHeadBytes+n > len(data) {
						break
					}
					sealFrame(data[at:at+frameHeadBytes+n:at+frameHeadBytes+n], number, hd.salt)
					at, number = at+frameHeadBytes+n, number+1
				}
			}
		}
		_, st, err := openCrash(newCrashFS(map[string][]byte{"wal-0000000000000009-0000000000000001": data}), 1)
		if err != nil && !errors.Is(err, raftlog.ErrCorrupt) && !errors.Is(err, raftlog.ErrStorage) {
			t.Fatal(err)
		}
		for i, e := range st.Entries {
			if e.GetIndex() != st.Snapshot.GetMetadata().GetIndex()+uint64(i)+1 {
				t.Fatal("a gap")
			}
		}
	})
}

func FuzzSnapshot(f *testing.F) {
	fs := newCrashFS(nil)
	w := &wal{fs: fs, dir: "d", id: crashID, next: 3}
	m, err := w.writeSnapshot(f.Context(), 3, testSnapshot(5, 2, 100))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(fs.names[w.snapshotName(3)].data)
	f.Fuzz(func(t *testing.T, b []byte) {
		m.length, m.sum = uint64(len(b)), checksum(b)
		s, err := decodeSnapshot(b, m, crashID)
		if err == nil && (s.GetMetadata().GetIndex() != 5 || s.GetMetadata().GetTerm() != 2) {
			t.Fatal("another snapshot")
		}
	})
}

func FuzzMeta(f *testing.F) {
	m := metaState{generation: 3, logs: []logRecord{{crashID, logBegun}}, records: map[string][]byte{"a": []byte("b"),
		"c": nil}}
	b := m.encode()
	f.Add(b[:len(b)-4])
	f.Fuzz(func(t *testing.T, b []byte) {
		b = append(bytes.Clone(b), 0, 0, 0, 0)
		putChecksum(b)
		m, err := decodeMeta(b)
		if err != nil {
			return
		}
		again, err := decodeMeta(m.encode())
		if err != nil || again.generation != m.generation || len(again.records) != len(m.records) ||
			len(again.logs) != len(m.logs) {
			t.Fatalf("written again: %v", err)
		}
	})
}
