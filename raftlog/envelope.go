package raftlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// These are the encodings of the members' contexts and of the configuration's index, which raft
// does not store. Numbers are big-endian, and each value has exactly one encoding:
//
//	member    ID (8), length of the context (2), context
//	entry     format (1), member                              the context of the entry that adds it
//	snapshot  format (1), index of the configuration (8), number of members (2), members by ID, state

const envelopeFormat = 1

var errEnvelope = errors.New("invalid member data")

func appendMember(b []byte, m Member) []byte {
	b = binary.BigEndian.AppendUint64(b, m.ID)
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.Context)))
	return append(b, m.Context...)
}

func takeMember(b []byte) (m Member, rest []byte, err error) {
	if len(b) < 10 {
		return m, nil, fmt.Errorf("%w: truncated member", errEnvelope)
	}
	m.ID = binary.BigEndian.Uint64(b)
	n := int(binary.BigEndian.Uint16(b[8:]))
	b = b[10:]
	if n > maxContext || n > len(b) || !validID(m.ID) {
		return m, nil, fmt.Errorf("%w: member %x has a context of %d bytes, only %d are left",
			errEnvelope, m.ID, n, len(b))
	}
	if n > 0 {
		m.Context = bytes.Clone(b[:n]) // the member outlives the snapshot's bytes
	}
	return m, b[n:], nil
}

// added encodes the context of a configuration entry that adds a member.
func added(m Member) []byte { return appendMember([]byte{envelopeFormat}, m) }

// addedMembers decodes the context of a configuration entry. Only an entry that adds a member has a
// context.
func addedMembers(b []byte) ([]Member, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if b[0] != envelopeFormat {
		return nil, fmt.Errorf("%w: unknown format %d", errEnvelope, b[0])
	}
	m, rest, err := takeMember(b[1:])
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%w: %d trailing bytes", errEnvelope, len(rest))
	}
	if err != nil {
		return nil, err
	}
	return []Member{m}, nil
}

func enclose(index uint64, members []Member, state []byte) []byte {
	return append(envelope(index, members), state...)
}

func envelope(index uint64, members []Member) []byte {
	b := []byte{envelopeFormat}
	b = binary.BigEndian.AppendUint64(b, index)
	b = binary.BigEndian.AppendUint16(b, uint16(len(members)))
	for _, m := range members {
		b = appendMember(b, m)
	}
	return b
}

// open decodes a snapshot into its configuration and its state, which shares memory with the
// snapshot. It returns an error if the encoded members differ from those in the metadata.
func open(s *raftpb.Snapshot) (Configuration, []byte, error) {
	b, meta := s.GetData(), s.GetMetadata()
	if len(b) < 11 || b[0] != envelopeFormat {
		return Configuration{}, nil, fmt.Errorf("%w: snapshot begins with %x", errEnvelope, b[:min(len(b), 11)])
	}
	index, n := binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint16(b[9:])
	if index == 0 || index > meta.GetIndex() || n > maxMembers {
		return Configuration{}, nil, fmt.Errorf("%w: %d members of configuration %d in a snapshot at %d", errEnvelope, n,
			index, meta.GetIndex())
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
		return Configuration{}, nil, fmt.Errorf("%w: its members differ from the snapshot's", errEnvelope)
	}
	return config, b[:len(b):len(b)], nil
}
