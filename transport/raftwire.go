package transport

import (
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// A third of the allocations for each lock would come from generated protobuf code. So this file
// encodes and decodes common messages by hand. Protobuf handles all other messages, including
// malformed ones.

// Tags of the fields in raft.proto, with number and wire type.
const (
	tagType       = 1<<3 | uint64(protowire.VarintType)
	tagTo         = 2<<3 | uint64(protowire.VarintType)
	tagFrom       = 3<<3 | uint64(protowire.VarintType)
	tagTerm       = 4<<3 | uint64(protowire.VarintType)
	tagLogTerm    = 5<<3 | uint64(protowire.VarintType)
	tagIndex      = 6<<3 | uint64(protowire.VarintType)
	tagEntries    = 7<<3 | uint64(protowire.BytesType)
	tagCommit     = 8<<3 | uint64(protowire.VarintType)
	tagReject     = 10<<3 | uint64(protowire.VarintType)
	tagRejectHint = 11<<3 | uint64(protowire.VarintType)
	tagContext    = 12<<3 | uint64(protowire.BytesType)
	tagVote       = 13<<3 | uint64(protowire.VarintType)

	tagEntryType  = 1<<3 | uint64(protowire.VarintType)
	tagEntryTerm  = 2<<3 | uint64(protowire.VarintType)
	tagEntryIndex = 3<<3 | uint64(protowire.VarintType)
	tagEntryData  = 4<<3 | uint64(protowire.BytesType)
)

// appendMessage appends exactly the bytes that protobuf would append for m.
func appendMessage(b []byte, m *raftpb.Message) ([]byte, error) {
	if !isPlain(m) {
		return proto.MarshalOptions{}.MarshalAppend(b, m)
	}
	if m.Type != nil {
		b = protowire.AppendVarint(append(b, byte(tagType)), uint64(*m.Type))
	}
	b = appendNumber(b, tagTo, m.To)
	b = appendNumber(b, tagFrom, m.From)
	b = appendNumber(b, tagTerm, m.Term)
	b = appendNumber(b, tagLogTerm, m.LogTerm)
	b = appendNumber(b, tagIndex, m.Index)
	for _, e := range m.Entries {
		b = protowire.AppendVarint(append(b, byte(tagEntries)), uint64(entrySize(e)))
		b = appendEntry(b, e)
	}
	b = appendNumber(b, tagCommit, m.Commit)
	if m.Reject != nil {
		b = protowire.AppendVarint(append(b, byte(tagReject)), protowire.EncodeBool(*m.Reject))
	}
	b = appendNumber(b, tagRejectHint, m.RejectHint)
	if m.Context != nil {
		b = protowire.AppendBytes(append(b, byte(tagContext)), m.Context)
	}
	return appendNumber(b, tagVote, m.Vote), nil
}

func isPlain(m *raftpb.Message) bool {
	if m == nil || m.Snapshot != nil || len(m.Responses) > 0 || len(m.ProtoReflect().GetUnknown()) > 0 {
		return false
	}
	for _, e := range m.Entries {
		if e == nil || len(e.ProtoReflect().GetUnknown()) > 0 {
			return false
		}
	}
	return true
}

func appendNumber(b []byte, tag uint64, v *uint64) []byte {
	if v == nil {
		return b
	}
	return protowire.AppendVarint(append(b, byte(tag)), *v)
}

func numberSize(v *uint64) int {
	if v == nil {
		return 0
	}
	return 1 + protowire.SizeVarint(*v)
}

func entrySize(e *raftpb.Entry) int {
	n := numberSize(e.Term) + numberSize(e.Index)
	if e.Type != nil {
		n += 1 + protowire.SizeVarint(uint64(*e.Type))
	}
	if e.Data != nil {
		n += 1 + protowire.SizeBytes(len(e.Data))
	}
	return n
}

func appendEntry(b []byte, e *raftpb.Entry) []byte {
	if e.Type != nil {
		b = protowire.AppendVarint(append(b, byte(tagEntryType)), uint64(*e.Type))
	}
	b = appendNumber(b, tagEntryTerm, e.Term)
	b = appendNumber(b, tagEntryIndex, e.Index)
	if e.Data != nil {
		b = protowire.AppendBytes(append(b, byte(tagEntryData)), e.Data)
	}
	return b
}
