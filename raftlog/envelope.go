package raftlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// What raft carries for us, and what it does not know of a configuration: since when it holds, and
// who is who. Numbers are big-endian, and there is one way to write each value:
//
//	member    ID (8), length of the context (2), context
//	entry     format (1), member                              the context of the entry that adds it
//	snapshot  format (1), index of the configuration (8), number of members (2), members by ID, state of the Applier

// envelopeFormat is the present format of both.
const envelopeFormat = 1

var errEnvelope = errors.New("not what says who is who")

func appendMember(b []byte, m Member) []byte {
	b = binary.BigEndian.AppendUint64(b, m.ID)
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.Context)))
	return append(b, m.Context...)
}

// takeMember reads one member, a part of b.
func takeMember(b []byte) (m Member, rest []byte, err error) {
	if len(b) < 10 {
		return m, nil, fmt.Errorf("%w: it ends within a member", errEnvelope)
	}
	m.ID = binary.BigEndian.Uint64(b)
	n := int(binary.BigEndian.Uint16(b[8:]))
	b = b[10:]
	if n > contextMax || n > len(b) || !validID(m.ID) {
		return m, nil, fmt.Errorf("%w: member %x with a context of %d bytes, %d are left", errEnvelope, m.ID, n, len(b))
	}
	if n > 0 {
		m.Context = bytes.Clone(b[:n]) // of its own: it outlives the snapshot
	}
	return m, b[n:], nil
}

// validID reports whether a replica can have this raft ID.
func validID(id uint64) bool { return id != 0 && !raft.IsLocalMsgTarget(id) }

// added writes the context of an entry that adds a member.
func added(m Member) []byte { return appendMember([]byte{envelopeFormat}, m) }

// whoIsAdded reads it. The context of any other change is empty.
func whoIsAdded(b []byte) ([]Member, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if b[0] != envelopeFormat {
		return nil, fmt.Errorf("%w: format %d", errEnvelope, b[0])
	}
	m, rest, err := takeMember(b[1:])
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%w: %d bytes too many", errEnvelope, len(rest))
	}
	if err != nil {
		return nil, err
	}
	return []Member{m}, nil
}

// enclose puts the state of the Applier into its envelope.
func enclose(index uint64, members []Member, state []byte) []byte {
	return append(envelope(index, members), state...)
}

// envelope writes what stands before the state in a snapshot.
func envelope(index uint64, members []Member) []byte {
	b := []byte{envelopeFormat}
	b = binary.BigEndian.AppendUint64(b, index)
	b = binary.BigEndian.AppendUint16(b, uint16(len(members)))
	for _, m := range members {
		b = appendMember(b, m)
	}
	return b
}

// open reads a snapshot: the configuration, and the state of the Applier, which is a part of it. It
// refuses an envelope that does not fit the rest of the snapshot.
func open(s *raftpb.Snapshot) (Configuration, []byte, error) {
	b, meta := s.GetData(), s.GetMetadata()
	if len(b) < 11 || b[0] != envelopeFormat {
		return Configuration{}, nil, fmt.Errorf("%w: a snapshot that begins with %x", errEnvelope, b[:min(len(b), 11)])
	}
	index, n := binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint16(b[9:])
	if index == 0 || index > meta.GetIndex() || n > membersMax {
		return Configuration{}, nil, fmt.Errorf("%w: %d members since %d in a snapshot at %d", errEnvelope, n, index,
			meta.GetIndex())
	}
	b = b[11:]
	var members []Member
	for range n {
		m, rest, err := takeMember(b)
		if err != nil {
			return Configuration{}, nil, err
		}
		members, b = append(members, m), rest
	}
	config := newConfiguration(index, meta.GetConfState(), members)
	if !slices.EqualFunc(members, config.Members, func(a, b Member) bool { return a.ID == b.ID }) {
		return Configuration{}, nil, fmt.Errorf("%w: it names others than the snapshot", errEnvelope)
	}
	return config, b[:len(b):len(b)], nil
}
