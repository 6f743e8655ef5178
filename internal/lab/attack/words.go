package attack

import (
	"bytes"
	"encoding/binary"
	"regexp"

	"github.com/mortise-lock/mortise/internal/formats"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

// Replica is one replica of a configuration in the messages about founding.
type Replica struct {
	Raft     uint64
	Instance nodeid.ID
	Addr     string
	Life     uint64
}

func text(b []byte, s string) []byte { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }

func replicas(b []byte, all []Replica) []byte {
	b = binary.AppendUvarint(b, uint64(len(all)))
	for _, r := range all {
		b = append(binary.AppendUvarint(b, r.Raft), r.Instance[:]...)
		b = append(binary.AppendUvarint(text(b, r.Addr), r.Life), 0)
	}
	return b
}

// InstanceInfo returns an answer about the founding from a member of a group with a leader.
func InstanceInfo(name, addr string, group, at uint64, voters []Replica) []byte {
	b := text(text([]byte{formats.Founding, 2}, name), addr)
	b = binary.AppendUvarint(append(b, 2, 1, 0), group)
	b = append(b, 3, 0, 0)                          // settings: Replicas, no Founders, Voters
	b = append(binary.AppendUvarint(b, 10e9), 0, 0) // the TTL, no grace, not solo
	b = binary.AppendUvarint(b, uint64(lockfsm.RulesVersion))
	b = binary.AppendUvarint(b, 1_800_000_000e3)        // the wall clock
	b = append(replicas(b, voters), 0)                  // no obstacle
	b = append(b, 1, 0, 0, 0, 1, 0, 0)                  // own life and boot, not durable, not resuming; the asker's
	return append(binary.AppendUvarint(b, at), 0, 0, 0) // at; no Supersedes, no FloorUnixMS, no Met
}

// Push returns a message about a configuration. The number `at` may be larger than any correct
// value.
func Push(to nodeid.ID, group, at uint64, voters []Replica) []byte {
	b := append([]byte{formats.Founding, 9}, to[:]...)
	return replicas(binary.AppendUvarint(binary.AppendUvarint(b, group), at), voters)
}

// Prepare returns a request to an instance to start a replica.
func Prepare(to nodeid.ID, group, raft, term, at uint64, voters []Replica) []byte {
	b := append([]byte{formats.Founding, 7}, to[:]...)
	for _, v := range [...]uint64{group, raft, term, at} {
		b = binary.AppendUvarint(b, v)
	}
	return replicas(b, voters)
}

// Meta is the gossip data about one member.
type Meta struct {
	Instance         nodeid.ID
	Group, At        uint64
	Leader           bool
	Name, Zone, Addr string
}

// Encode returns m as gossip carries it.
func (m Meta) Encode() []byte {
	b := append([]byte{formats.Gossip}, m.Instance[:]...)
	b = binary.AppendUvarint(binary.AppendUvarint(b, m.Group), m.At)
	leader := byte(0)
	if m.Leader {
		leader = 1
	}
	return text(text(text(append(b, leader), m.Name), m.Zone), m.Addr)
}

// Alive returns a packet of memberlist with the address and the meta data of a member. It overrides
// all packets with a lower incarnation.
func Alive(label string, of Member, incarnation uint32, m Meta) []byte {
	b := append([]byte{244, byte(len(label))}, label...)
	b = binary.BigEndian.AppendUint32(append(msgpack(append(b, 4, 0x86), "Incarnation"), 0xce), incarnation)
	b = msgpack(msgpack(b, "Node"), of.Name)
	b = msgpack(msgpack(b, "Addr"), string(of.IP))
	b = binary.BigEndian.AppendUint16(append(msgpack(b, "Port"), 0xcd), of.Port)
	b = msgpack(msgpack(b, "Meta"), string(m.Encode()))
	return msgpack(msgpack(b, "Vsn"), "\x01\x05\x05\x00\x00\x00")
}

func msgpack(b []byte, s string) []byte {
	if len(s) < 32 {
		return append(append(b, 0xa0|byte(len(s))), s...)
	}
	return append(binary.BigEndian.AppendUint16(append(b, 0xda), uint16(len(s))), s...)
}

// Exchange returns the beginning of an exchange of all gossip data. The sender contributes no
// data. The answer on the same stream contains all members; see [Members].
func Exchange(label string) []byte {
	b := append([]byte{244, byte(len(label))}, label...)
	b = append(msgpack(append(b, 6, 0x83), "Nodes"), 0)
	b = append(msgpack(b, "UserStateLen"), 0)
	return append(msgpack(b, "Join"), 0xc2)
}

// Member is the name and address of an instance in gossip. Other members ignore a message with a
// wrong name or address.
type Member struct {
	Name string
	IP   []byte
	Port uint16
}

// Members returns the members in the answer to [Exchange].
func Members(answer []byte) (all []Member) {
	names := regexp.MustCompile(`[0-9a-f]{24}`).FindAll(answer, -1)
	for i, name := range names {
		m := Member{Name: string(name), Port: 7947}
		_, rest, found := nth(answer, "\xa4Addr", i)
		if !found || len(rest) < 17 {
			return all
		}
		switch rest[0] {
		case 0xb0:
			m.IP = rest[1:17]
		case 0xa4:
			m.IP = rest[1:5]
		default:
			return all
		}
		if _, rest, found = nth(answer, "\xa4Port", i); found && len(rest) > 2 && rest[0] == 0xcd {
			m.Port = binary.BigEndian.Uint16(rest[1:])
		}
		all = append(all, m)
	}
	return all
}

// nth splits b at the n-th occurrence of mark, counted from 0.
func nth(b []byte, mark string, n int) (before, after []byte, found bool) {
	for after = b; n >= 0; n-- {
		if before, after, found = bytes.Cut(after, []byte(mark)); !found {
			return nil, nil, false
		}
	}
	return before, after, true
}
