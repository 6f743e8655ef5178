package transport

import (
	"google.golang.org/protobuf/encoding/protowire"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// frameSize returns an upper bound of the encoded size of f, without its fields Standing and
// Refusal.
func frameSize(f *wire.Frame) int {
	const head = 1 + 10 // bytes of tag and length
	n := 4*head + len(f.Renewals) + len(f.Commands) + len(f.Replies)
	for _, m := range f.Raft {
		n += head + len(m)
	}
	return n
}

// appendFrame appends exactly the bytes that protobuf would append for f.
func appendFrame(b []byte, f *wire.Frame) []byte {
	b = appendWords(b, tagRenewals, f.Renewals)
	b = appendWords(b, tagCommands, f.Commands)
	b = appendWords(b, tagReplies, f.Replies)
	for _, m := range f.Raft {
		b = protowire.AppendBytes(append(b, byte(tagRaft)), m)
	}
	if f.Retired {
		b = append(b, byte(tagRetired), 1)
	}
	return b
}

func appendWords(b []byte, tag uint64, words []byte) []byte {
	if len(words) == 0 {
		return b
	}
	return protowire.AppendBytes(append(b, byte(tag)), words)
}
