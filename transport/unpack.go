package transport

import (
	"errors"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// packedMessage is a raft message and everything that it points to except its entries.
type packedMessage struct {
	message                                                raftpb.Message
	kind                                                   raftpb.MessageType
	reject                                                 bool
	to, from, term, logTerm, index, commit, hint, votesFor uint64
}

type packedEntry struct {
	entry       raftpb.Entry
	kind        raftpb.EntryType
	term, index uint64
}

// unpack decodes the raft messages of a frame. They share no memory with the frame, because the log
// keeps their entries.
func unpack(packed [][]byte) ([]*raftpb.Message, error) {
	if len(packed) == 0 {
		return nil, nil
	}
	messages, room := blocks[*raftpb.Message, packedMessage](len(packed))
	size, entries, strange := 0, maxEntries, maxStrange
	for i, b := range packed {
		if room[i].decode(b, &entries) {
			messages[i] = &room[i].message
			size += payload(messages[i])
			continue
		}
		if strange -= len(b); entries < 0 || strange < 0 {
			return nil, errStrange
		}
		messages[i] = &raftpb.Message{}
		if err := proto.Unmarshal(b, messages[i]); err != nil {
			return nil, err
		}
	}
	if size == 0 {
		return messages, nil
	}
	own := make([]byte, 0, size) // data of all messages of the frame
	for i, m := range messages {
		if m != &room[i].message {
			continue // protobuf has copied its data
		}
		for _, e := range m.Entries {
			own, e.Data = keep(own, e.Data)
		}
		own, m.Context = keep(own, m.Context)
	}
	return messages, nil
}

// errStrange means that a frame has too many raft messages or entries, or too many bytes that only
// protobuf can decode.
var errStrange = errors.New("raft messages of an unusual shape")

func blocks[P, B any](n int) ([]P, []B) {
	if n == 1 {
		one := &struct {
			list  [1]P
			block [1]B
		}{}
		return one.list[:], one.block[:]
	}
	return make([]P, n), make([]B, n)
}

func payload(m *raftpb.Message) int {
	n := len(m.Context)
	for _, e := range m.Entries {
		n += len(e.Data)
	}
	return n
}

// keep appends piece to own, which has enough capacity, and returns the copy. Nil stays nil, and
// empty stays empty.
func keep(own, piece []byte) (all, kept []byte) {
	if len(piece) == 0 {
		return own, piece
	}
	all = append(own, piece...)
	return all, all[len(own):len(all):len(all)]
}

// field reads the first field of b. n is its length, or -1 if the field is malformed or is neither
// a number nor bytes.
func field(b []byte) (tag, number uint64, piece []byte, n int) {
	tag, head := protowire.ConsumeVarint(b)
	if head < 0 {
		return 0, 0, nil, -1
	}
	switch protowire.Type(tag & 7) {
	case protowire.VarintType:
		number, n = protowire.ConsumeVarint(b[head:])
	case protowire.BytesType:
		piece, n = protowire.ConsumeBytes(b[head:])
	default:
		return 0, 0, nil, -1
	}
	if n < 0 {
		return 0, 0, nil, -1
	}
	return tag, number, piece, head + n
}

// decode decodes a message that shares the memory of b, and subtracts its entries from *most. If it
// returns false, protobuf must decode the message, unless *most is negative.
func (p *packedMessage) decode(b []byte, most *int) bool {
	m := &p.message
	var room []packedEntry
	for len(b) > 0 {
		tag, number, piece, n := field(b)
		if n < 0 {
			return false
		}
		switch tag {
		case tagType:
			p.kind = raftpb.MessageType(number) //nolint:gosec // cut as protobuf does
			m.Type = &p.kind
		case tagEntries:
			if m.Entries == nil {
				left := count(b, tagEntries)
				if left < 0 {
					return false
				}
				if *most -= left; *most < 0 {
					return false
				}
				m.Entries, room = blocks[*raftpb.Entry, packedEntry](left)
				m.Entries = m.Entries[:0]
			}
			e := &room[len(m.Entries)]
			if !e.decode(piece) {
				return false
			}
			m.Entries = append(m.Entries, &e.entry)
		case tagReject:
			p.reject = protowire.DecodeBool(number)
			m.Reject = &p.reject
		case tagContext:
			m.Context = present(piece)
		default:
			if !p.number(tag, number) {
				return false
			}
		}
		b = b[n:]
	}
	return true
}

func (p *packedMessage) number(tag, number uint64) bool {
	m := &p.message
	var place *uint64
	var field **uint64
	switch tag {
	case tagTo:
		place, field = &p.to, &m.To
	case tagFrom:
		place, field = &p.from, &m.From
	case tagTerm:
		place, field = &p.term, &m.Term
	case tagLogTerm:
		place, field = &p.logTerm, &m.LogTerm
	case tagIndex:
		place, field = &p.index, &m.Index
	case tagCommit:
		place, field = &p.commit, &m.Commit
	case tagRejectHint:
		place, field = &p.hint, &m.RejectHint
	case tagVote:
		place, field = &p.votesFor, &m.Vote
	default:
		return false
	}
	*place, *field = number, place
	return true
}

func (p *packedEntry) decode(b []byte) bool {
	e := &p.entry
	for len(b) > 0 {
		tag, number, piece, n := field(b)
		if n < 0 {
			return false
		}
		switch tag {
		case tagEntryType:
			p.kind = raftpb.EntryType(number) //nolint:gosec // cut as protobuf does
			e.Type = &p.kind
		case tagEntryTerm:
			p.term = number
			e.Term = &p.term
		case tagEntryIndex:
			p.index = number
			e.Index = &p.index
		case tagEntryData:
			e.Data = present(piece)
		default:
			return false
		}
		b = b[n:]
	}
	return true
}

// present replaces empty bytes by a slice that is not nil and does not keep the frame in memory.
func present(piece []byte) []byte {
	if len(piece) == 0 {
		return []byte{}
	}
	return piece
}

// count returns the number of fields of b with the given tag, or -1 if b has fields other than
// numbers and bytes.
func count(b []byte, tag uint64) int {
	fields := 0
	for len(b) > 0 {
		is, _, _, n := field(b)
		if n < 0 {
			return -1
		}
		if is == tag {
			fields++
		}
		b = b[n:]
	}
	return fields
}
